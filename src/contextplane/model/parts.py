"""The contents of an execution pack by what a reference calls them: `steps/3`, `outputs/report.md`."""

from collections.abc import Iterator

from contextplane.model.manifest import Manifest

__all__ = ["contents_of"]


def contents_of(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Every content as it stands in the manifest, in the order of a run: its part, and its reference if it has one."""
    yield "system_prompt", manifest.system_prompt
    yield from ((f"prompts/{n}", one.content_ref) for n, one in enumerate(manifest.prompts))
    yield from ((f"inputs/{one.name}", one.content_ref) for one in manifest.inputs)
    yield from ((f"steps/{n}", one.output_ref) for n, one in enumerate(manifest.steps))
    yield from ((f"outputs/{one.name}", one.content_ref) for one in manifest.outputs)
