"""Client for Sagitta, a vector database that answers nearest-neighbour queries exactly.

`Sagitta` blocks and `AsyncSagitta` is for asyncio; both have the same methods. `sagitta.wire`
contains the types of requests and replies, `sagitta.langchain` a vector store for LangChain.
"""

from sagitta.client import AsyncSagitta, Sagitta
from sagitta.collection import AsyncCollection, Collection
from sagitta.errors import SagittaError
from sagitta.flow import AsyncStream, Stream
from sagitta.retry import CircuitBreaker, Retry
from sagitta.streams import Neighbors, Projected
from sagitta.values import decode_values
from sagitta.warning import SagittaWarning

__version__ = "0.1.0"

__all__ = [
    "AsyncCollection",
    "AsyncSagitta",
    "AsyncStream",
    "CircuitBreaker",
    "Collection",
    "Neighbors",
    "Projected",
    "Retry",
    "Sagitta",
    "SagittaError",
    "SagittaWarning",
    "Stream",
    "decode_values",
]
