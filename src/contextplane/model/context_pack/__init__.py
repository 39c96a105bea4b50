"""The ContextPack `pack_id@X.Y.Z`: the signed contract of what an agent may see and do. One file per layer."""
