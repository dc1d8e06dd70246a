"""Tables that are read in chunks of rows: larger than memory, or on a cluster."""

from pauca.design.chunks.base import ChunkError, Chunks
from pauca.design.chunks.design import ChunkedDesign
from pauca.design.chunks.opening import as_chunks, is_dask, is_lazy_frame, scan

__all__ = ["ChunkError", "ChunkedDesign", "Chunks", "as_chunks", "is_dask", "is_lazy_frame", "scan"]
