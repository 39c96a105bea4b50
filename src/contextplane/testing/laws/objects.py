"""The laws of the `Objects` port, for any adapter of it."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.ids import Digest
from contextplane.ports.objects import ObjectCorrupt, ObjectNotFound, Objects, ObjectsInUse, SourceUnreadable

__all__ = ["ObjectsLaw"]

_ABSENT = Digest("0" * 64)
_LARGE = bytes(range(256)) * 4096 * 5  # five chunks of a mebibyte


class ObjectsLaw:
    """The laws. Subclasses make an empty store, and damage an object in it."""

    def make(self) -> Objects:
        raise NotImplementedError

    def damage(self, objects: Objects, digest: Digest, data: bytes) -> None:
        """Replace the stored bytes of an object, as a failing disk or an intruder would."""
        raise NotImplementedError

    @given(st.binary(max_size=2048))
    def test_the_name_is_the_sha256_and_putting_again_changes_nothing(self, data: bytes) -> None:
        objects = self.make()
        assert objects.put(data) == objects.put(data) == Digest(hashlib.sha256(data).hexdigest())
        assert list(objects.names()) == [Digest.of(data)]

    @given(st.lists(st.binary(max_size=64), max_size=8))
    def test_what_was_put_comes_back_and_nothing_else_is_there(self, contents: list[bytes]) -> None:
        objects = self.make()
        digests = [objects.put(data) for data in contents]
        assert [objects.get(digest) for digest in digests] == contents
        assert list(objects.names()) == sorted(set(digests))
        assert not list(objects.strays())

    @given(st.lists(st.binary(max_size=512), max_size=6))
    def test_a_stream_is_the_same_object_as_its_bytes_joined(self, chunks: list[bytes]) -> None:
        objects = self.make()
        stored = objects.put_stream(iter(chunks))
        data = b"".join(chunks)
        assert (stored.digest, stored.size) == (Digest.of(data), len(data))
        assert objects.get(stored.digest) == data

    def test_bytes_a_stream_and_a_file_of_the_same_content_are_one_object(
        self, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        objects = self.make()
        path = tmp_path_factory.mktemp("source") / "large"
        path.write_bytes(_LARGE)
        by_path = objects.put_path(str(path))
        by_stream = objects.put_stream(_LARGE[i : i + 1000] for i in range(0, len(_LARGE), 1000))
        assert by_path == by_stream
        assert objects.put(_LARGE) == by_path.digest
        assert b"".join(objects.stream(by_path.digest)) == _LARGE
        assert list(objects.names()) == [by_path.digest]

    def test_the_empty_object_exists_like_any_other(self) -> None:
        objects = self.make()
        digest = objects.put(b"")
        assert (objects.get(digest), objects.size(digest), objects.has(digest)) == (b"", 0, True)

    def test_what_is_not_there_is_not_found_by_every_way_of_asking(self) -> None:
        objects = self.make()
        assert not objects.has(_ABSENT)
        assert objects.check(_ABSENT).state == "missing"
        for ask in (objects.get, objects.size, objects.write_time, lambda digest: list(objects.stream(digest))):
            with pytest.raises(ObjectNotFound):
                ask(_ABSENT)

    def test_a_batch_is_invisible_until_it_is_committed(self) -> None:
        objects = self.make()
        with objects.batch() as batch:
            first = batch.put(b"first")
            assert not objects.has(first)
            batch.commit()
            assert objects.has(first)
            second = batch.put(b"second")
        assert objects.get(second) == b"second"

    def test_a_batch_left_by_an_exception_leaves_nothing_behind(self) -> None:
        objects = self.make()
        with pytest.raises(RuntimeError), objects.batch() as batch:
            batch.put(b"never")
            batch.put_stream([b"nor", b"this"])
            raise RuntimeError
        assert not list(objects.names())
        assert not list(objects.strays())

    def test_a_batch_may_hold_the_same_content_many_times(self) -> None:
        objects = self.make()
        with objects.batch() as batch:
            digests = {
                batch.put(b"same"),
                batch.put(b"same"),
                batch.put_stream([b"sa", b"me"]).digest,
                batch.put(b"same"),
            }
        assert digests == {Digest.of(b"same")}
        assert not list(objects.strays())

    def test_reading_damaged_bytes_fails_and_says_so(self) -> None:
        objects = self.make()
        for data, damaged in ((b"whole", b"whoLe"), (b"whole two", b""), (b"", b"x"), (_LARGE, _LARGE[:-1] + b"!")):
            digest = objects.put(data)
            self.damage(objects, digest, damaged)
            with pytest.raises(ObjectCorrupt):
                objects.get(digest)
            with pytest.raises(ObjectCorrupt):
                list(objects.stream(digest))
            assert objects.check(digest).state == "corrupt"

    def test_putting_the_right_bytes_heals_a_damaged_object(self) -> None:
        objects = self.make()
        for data in (b"precious", _LARGE):
            digest = objects.put(data)
            self.damage(objects, digest, b"x" + data[1:])
            objects.put(data)
            assert objects.check(digest).state == "whole"
            self.damage(objects, digest, data[:-1])
            objects.put_stream([data])
            assert objects.get(digest) == data

    def test_check_tells_the_size_of_what_is_whole(self) -> None:
        objects = self.make()
        condition = objects.check(objects.put(b"12345"))
        assert (condition.state, condition.size) == ("whole", 5)

    def test_a_source_that_fails_is_told_apart_from_a_store_that_fails(
        self, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        objects = self.make()
        folder = tmp_path_factory.mktemp("source")
        for path in (folder / "absent", folder):
            with pytest.raises(SourceUnreadable):
                objects.put_path(str(path))
        assert not list(objects.names())
        assert not list(objects.strays())

    def test_collecting_takes_what_is_older_and_keeps_what_is_not(self) -> None:
        objects = self.make()
        digest = objects.put(b"old news")
        written = objects.write_time(digest)
        assert abs(datetime.now(UTC) - written) < timedelta(minutes=5)  # noqa: TID251  the law is about the real clock
        with objects.collector() as collector:
            assert collector.collect(digest, older_than=written - timedelta(seconds=1)) is None
            assert objects.has(digest)
            assert collector.collect(digest, older_than=written + timedelta(seconds=1)) == len(b"old news")
            assert not objects.has(digest)
            assert collector.collect(digest, older_than=written + timedelta(seconds=1)) is None

    def test_while_a_batch_is_open_nothing_is_collected(self) -> None:
        objects = self.make()
        old = objects.put(b"there before")
        with objects.batch() as batch:
            for act in (lambda: None, lambda: batch.put(b"there before"), batch.commit):
                act()
                with pytest.raises(ObjectsInUse), objects.collector():
                    pass
        with pytest.raises(RuntimeError), objects.batch():
            raise RuntimeError
        with objects.collector() as collector:
            assert collector.collect(old, older_than=objects.write_time(old) + timedelta(seconds=1)) is not None

    def test_names_come_in_ascending_order(self) -> None:
        objects = self.make()
        digests = sorted(objects.put(bytes([n])) for n in range(64))
        assert list(objects.names()) == digests
