"""One suite per port: a test module subclasses it once for each adapter and says how to make one."""
