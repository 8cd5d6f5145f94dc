"""What crosses the wire, in the names of the wire: TypedDicts of requests and replies.

Generated from the schemas of the server by `npm run openapi`; do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from typing_extensions import NotRequired, TypedDict

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

JsonObject: TypeAlias = Mapping[str, Any]
"""A JSON object. NumPy's scalars and arrays in it become numbers and lists."""
Values: TypeAlias = "Sequence[float] | NDArray[numpy.number[Any]] | str"
"""A vector of [dimension] float32: numbers, an array, or base64 of little-endian float32."""
IncludeValues: TypeAlias = "bool | Literal['base64', 'numpy']"
"""How vectors are returned: not, as numbers, as base64 (queries only) or as float32 arrays."""


ErrorCode: TypeAlias = Literal[
    "invalid_request",
    "invalid_json",
    "invalid_arrow",
    "unknown_parameter",
    "dimension_mismatch",
    "invalid_vector",
    "invalid_metadata",
    "invalid_filter",
    "duplicate_id",
    "collection_required",
    "cursor_invalid",
    "cursor_mismatch",
    "cursor_expired",
    "limit_exceeded",
    "idempotency_key_mismatch",
    "credentials_missing",
    "credentials_invalid",
    "insufficient_scope",
    "origin_not_allowed",
    "rate_limited",
    "route_not_found",
    "method_not_allowed",
    "not_acceptable",
    "unsupported_media_type",
    "payload_too_large",
    "collection_not_found",
    "collection_exists",
    "collection_aliased",
    "alias_not_found",
    "vector_not_found",
    "key_not_found",
    "node_not_found",
    "would_lock_out",
    "backup_exists",
    "vector_exists",
    "precondition_failed",
    "idempotency_in_flight",
    "idempotency_key_reused",
    "collections_apart",
    "embedding_not_configured",
    "collection_unavailable",
    "backups_not_configured",
    "credentials_unavailable",
    "embedding_failed",
    "embedding_unavailable",
    "overloaded",
    "no_leader",
    "no_holder",
    "outcome_unknown",
    "starting",
    "stopping",
    "deadline_exceeded",
    "storage_full",
    "backup_failed",
    "internal",
    "configuration_invalid",
    "data_directory_locked",
    "data_corrupt",
]
"""The stable identifier of the error; a code never changes its meaning."""


class ProblemIssue(TypedDict):
    """A problem in a request."""
    pointer: str
    """A JSON pointer into the body, or `?name` for a query parameter."""
    code: ErrorCode
    detail: str
    """What was found and what was expected."""
    expected: NotRequired[str | float]
    """The limit, the type or the values that were expected."""
    actual: NotRequired[str | float]
    """What was found."""


class Problem(TypedDict):
    """Any error, as in RFC 9457."""
    type: str
    """`urn:sagitta:error:` followed by the code."""
    title: str
    """The meaning of the code."""
    status: int
    """The HTTP status of the reply."""
    detail: str
    """What was found, what was expected and where."""
    instance: str
    """The path of the request."""
    code: ErrorCode
    request_id: str
    """The value of `X-Request-Id`, which is also in the server log."""
    retryable: bool
    """Whether the same request can succeed later. A write that is not idempotent by itself needs an
    idempotency key for that.
    """
    errors: NotRequired[Sequence[ProblemIssue]]
    """The first 100 issues."""
    committed_count: NotRequired[int]
    """For streamed writes: the number of rows that are durable. Later rows were not written."""
    sequence: NotRequired[int]
    """For streamed writes: the sequence of the last durable write, if any."""


CollectionId: TypeAlias = str
"""The identifier of a collection, unique on the server."""


Metric: TypeAlias = Literal["cosine", "dot", "euclidean", "jaccard", "hamming"]
"""How vectors are compared. A higher score is always better. `cosine`: in [-1, 1]. `dot`: the dot
product. `euclidean`: 1 / (1 + d) with d the L2 distance. For elements of `bit` also `jaccard`:
the share of common bits among those that either vector has, 0 if neither has any; and `hamming`:
1 / (1 + d) with d the number of bits that differ.
"""


ElementType: TypeAlias = Literal["float32", "float16", "bfloat16", "int8", "bit"]
"""The type of the elements of a vector, by default `float32`. Vectors are stored and compared as
values of the type: `float16` and `bfloat16` round to the nearest, `int8` accepts integers from
-128 to 127, `bit` 0 and 1.
"""


class NamedVectorInput(TypedDict):
    """A named vector to create."""
    dimension: int
    """The length of the vector."""
    metric: NotRequired[Metric]
    """`cosine` by default; `hamming` for elements of `bit`."""
    element_type: NotRequired[ElementType]
    multi: NotRequired[bool]
    """Whether a record has a list of vectors under this name, which `multi_vector` compares by
    MaxSim. For `cosine` and `dot`.
    """


VectorName: TypeAlias = str
"""The name of a named vector: a letter, then up to 63 letters, digits, `_` and `-`."""


class SparseVectorSettings(TypedDict):
    """Sparse vectors have no settings."""


Labels: TypeAlias = Mapping[str, str]
"""Text by name, for people and tools: at most 64 labels, whose names and texts have at most 256
characters each.
"""


TextLanguage: TypeAlias = Literal[
    "arabic",
    "armenian",
    "basque",
    "catalan",
    "czech",
    "danish",
    "dutch",
    "english",
    "finnish",
    "french",
    "german",
    "hungarian",
    "irish",
    "italian",
    "norwegian",
    "portuguese",
    "romanian",
    "russian",
    "slovene",
    "spanish",
    "swedish",
    "tamil",
    "turkish",
]
"""The language of a Snowball algorithm."""


class TextSettingsInput(TypedDict):
    """Indexes text of the metadata for full-text queries."""
    fields: Sequence[str]
    """Metadata paths whose strings, and strings in arrays, are searched as one text: at most 16."""
    language: NotRequired[TextLanguage | None]
    """The language of the Snowball algorithm that reduces words to their stems, in texts and
    queries; null for unchanged words. By default `null`.
    """
    stop_words: NotRequired[Sequence[str]]
    """Words that are ignored, at most 1000. Compared before stemming, regardless of case. By
    default `[]`.
    """
    k1: NotRequired[float]
    """BM25: how quickly repetitions of a word stop counting. By default `1.2`."""
    b: NotRequired[float]
    """BM25: how much long texts are penalized. By default `0.75`."""


DeclaredSchema: TypeAlias = Mapping[str, Literal["string", "number", "integer", "boolean", "date", "object", "string[]", "number[]", "integer[]", "boolean[]", "date[]"]]
"""Types of metadata by path, in the notation of filters. A vector whose metadata has another type
at one of them is rejected. Absent and null values pass, and so does everything at other paths.
`date` is a string with a date or time of RFC 3339.
"""


class Embedding(TypedDict):
    """Turns texts into vectors: vectors and queries may contain `embed`, a text, in place of
    values.
    """
    endpoint: str
    """The name of an endpoint in the configuration of the server, or `builtin` for the built-in
    model.
    """
    model: str
    """The model to use; that of `builtin` with its version."""
    sends_dimension: NotRequired[bool]
    """Whether to request vectors of the dimension of the collection (`dimensions`), which some
    models support. By default `false`.
    """


EmbeddingModel: TypeAlias = 'Literal["builtin"] | Embedding'
"""What turns texts into unnamed vectors: `builtin` for the built-in English model, whose vectors
have 512 elements, or a model of an endpoint.
"""


class CollectionCreate(TypedDict):
    """A collection to create."""
    id: NotRequired[CollectionId]
    """By default generated."""
    dimension: NotRequired[int]
    """The length of the unnamed vector, which every record has. Without it, records have only the
    named and sparse vectors and the text that the collection defines, of which it needs at least
    one.
    """
    metric: NotRequired[Metric]
    """The metric of the unnamed vector; only with `dimension`. `cosine` by default; `hamming` for
    elements of `bit`.
    """
    element_type: NotRequired[ElementType]
    """The element type of the unnamed vector; only with `dimension`. `float32` by default."""
    vectors: NotRequired[Mapping[str, NamedVectorInput]]
    """Named vectors, in addition to or instead of the unnamed one. Each record may have any of
    them. At most 32, with at most 65536 dimensions in total. Others can be added later.
    """
    sparse_vectors: NotRequired[Mapping[str, SparseVectorSettings]]
    """Sparse vectors, compared by the dot product. Each record may have any of them. Their settings
    are empty objects. At most 32, with names that do not occur in `vectors`. Others can be added
    later.
    """
    description: NotRequired[str | None]
    """Text for people. By default `null`."""
    labels: NotRequired[Labels]
    text: NotRequired[TextSettingsInput]
    ttl_seconds: NotRequired[int | None]
    """Seconds from the write of a vector without `expires_at` to its expiry; null for never. A
    change applies to later writes.
    """
    schema: NotRequired[DeclaredSchema | None]
    """Types of metadata by path; null or absent for none."""
    embed: NotRequired[EmbeddingModel | None]
    """The model that turns texts into unnamed vectors. Null or absent if the collection has none.
    """
    replication_factor: NotRequired[int | None]
    """The number of nodes of a cluster that hold the collection; null or absent for all. Requests
    can be sent to any node. While the cluster has fewer nodes, fewer hold it. It has no effect
    outside a cluster, where it is only stored.
    """
    idempotency_key: NotRequired[str]
    """Makes retries safe: requests with the same key and payload take effect once and get the same
    reply for 24 hours. Printable characters. Must equal the header `Idempotency-Key` if both are
    sent.
    """


class NamedVectorSettings(TypedDict):
    """The settings of a named vector."""
    dimension: int
    """The length of the vector."""
    metric: Metric
    element_type: NotRequired[ElementType]
    multi: NotRequired[Literal[True]]
    """Records have a list of vectors under this name."""


class TextSettings(TypedDict):
    """The text index of a collection; absent if there is none."""
    fields: Sequence[str]
    """Metadata paths whose strings, and strings in arrays, are searched as one text: at most 16."""
    language: TextLanguage | None
    """The language of the Snowball algorithm that reduces words to their stems, in texts and
    queries; null for unchanged words.
    """
    stop_words: Sequence[str]
    """Words that are ignored, at most 1000. Compared before stemming, regardless of case."""
    k1: float
    """BM25: how quickly repetitions of a word stop counting."""
    b: float
    """BM25: how much long texts are penalized."""


CollectionMoveUnderWay = TypedDict(
    "CollectionMoveUnderWay",
    {
        # The node that is loading the collection.
        "to": str,
        # The node that it replaces; absent for an additional node.
        "from": NotRequired[str],
    },
)
"""A move in progress: the node that joins `nodes`, or replaces one of them, when it has loaded the
collection; absent if there is none.
"""


class EngineChoice(TypedDict):
    """The engine that searches the collection."""
    name: str
    """The name of the engine."""
    reason: str
    """Why this engine was chosen."""


class MemoryUse(TypedDict):
    """Memory in use."""
    host_bytes: int
    """Bytes of the main memory."""
    mapped_bytes: int
    """Bytes of mapped files, whose memory the system can reclaim; not part of `host_bytes`."""
    device_bytes: int
    """Bytes of the memory of GPUs."""


class Collection(TypedDict):
    """A collection, its settings and its state."""
    id: CollectionId
    dimension: NotRequired[int]
    """The length of the unnamed vector; absent, like `metric`, if there is none."""
    metric: NotRequired[Metric]
    element_type: NotRequired[ElementType]
    vectors: NotRequired[Mapping[str, NamedVectorSettings]]
    """The named vectors; absent if there are none."""
    sparse_vectors: NotRequired[Mapping[str, SparseVectorSettings]]
    """The sparse vectors; absent if there are none."""
    description: str | None
    """Text for people."""
    labels: Mapping[str, str]
    """Text by name, for people and tools."""
    text: NotRequired[TextSettings]
    ttl_seconds: NotRequired[int]
    """Seconds from the write of a vector without `expires_at` to its expiry; absent for never."""
    schema: NotRequired[DeclaredSchema]
    """The declared types; absent if there are none."""
    embed: NotRequired[Embedding]
    """What turns texts into unnamed vectors; absent if nothing does."""
    replication_factor: NotRequired[int]
    """The intended number of nodes that hold it; absent for all."""
    nodes: NotRequired[Sequence[str]]
    """The names of the nodes that hold it; absent if all nodes do, and outside a cluster."""
    move: NotRequired[CollectionMoveUnderWay]
    status: Literal["loading", "ready", "failed", "elsewhere"]
    """`loading`: it has not been loaded since the start; its counts and bytes are 0, and requests
    for it wait. `failed`: the data of this collection is damaged; other collections are
    available. `elsewhere`: other nodes of the cluster hold it and did not report its counts,
    which are 0.
    """
    vector_count: int
    """The number of vectors."""
    sequence: int
    """The sequence of the last visible write."""
    created_at: str
    """When it was created."""
    updated_at: str
    """The time of the last write or the last change of settings."""
    engine: EngineChoice
    memory: MemoryUse
    disk_bytes: int
    """The size of segment files and the log. Clones share files with their originals if the file
    system supports links.
    """


class CollectionList(TypedDict):
    """A page of the collections."""
    collections: Sequence[Collection]
    """In the order of their ids."""
    next_cursor: NotRequired[str]
    """The token of the next page; absent on the last page."""
    has_more: bool
    """Whether there is another page."""
    total: int
    """The number of collections."""


class Segment(TypedDict):
    """Consecutive rows of a collection, which are stored together."""
    number: int
    """The number of the segment in its collection, from 1."""
    state: Literal["active", "sealed", "stored"]
    """`active` takes new rows, `sealed` waits for its file, `stored` has one."""
    row_count: int
    """Rows, including those that only snapshots see."""
    vector_count: int
    """Rows that are neither deleted nor replaced."""
    memory: MemoryUse
    file_bytes: int
    """The size of its file; 0 without one."""


class SegmentList(TypedDict):
    """A page of the segments of a collection."""
    segments: Sequence[Segment]
    """In the order of their numbers."""
    next_cursor: NotRequired[str]
    """The token of the next page; absent on the last page."""
    has_more: bool
    """Whether there is another page."""
    total: int
    """The number of segments."""
    file_bytes: int
    """The total size of segment files."""
    log_bytes: int
    """The size of writes that are only in the log, from which the next start reads them."""


class CollectionUpdate(TypedDict):
    """Absent members are unchanged. `labels` replaces all labels."""
    description: NotRequired[str | None]
    """Text for people."""
    labels: NotRequired[Labels]
    ttl_seconds: NotRequired[int | None]
    """Seconds from the write of a vector without `expires_at` to its expiry; null for never. A
    change applies to later writes.
    """
    schema: NotRequired[DeclaredSchema | None]
    """Replaces the whole schema; null for none. Every vector must match. The check takes a few
    seconds for a million vectors, during which writes wait.
    """
    embed: NotRequired[EmbeddingModel | None]
    """What turns texts into unnamed vectors from now on; null for nothing. Another model than the
    present one is refused while the collection has vectors, which would not be comparable.
    """
    replication_factor: NotRequired[int | None]
    """The number of nodes of a cluster that hold the collection from now on; null for all. Nodes
    load it, or drop it, one after another. It has no effect outside a cluster, where it is only
    stored.
    """
    vectors: NotRequired[Mapping[str, NamedVectorInput | None]]
    """Named vectors to add or, with null, to drop; the others are unchanged. Records lack an added
    vector until a write sets it, such as one with `mode` `patch`. A dropped vector disappears
    from all records at once, and its name becomes available.
    """
    sparse_vectors: NotRequired[Mapping[str, SparseVectorSettings | None]]
    """The same for sparse vectors."""


class CollectionClone(TypedDict):
    """Absent members other than the id are copied from the collection."""
    id: NotRequired[CollectionId]
    """By default generated."""
    description: NotRequired[str | None]
    """Text for people."""
    labels: NotRequired[Labels]
    idempotency_key: NotRequired[str]
    """Makes retries safe: requests with the same key and payload take effect once and get the same
    reply for 24 hours. Printable characters. Must equal the header `Idempotency-Key` if both are
    sent.
    """


class CollectionRename(TypedDict):
    """The new id of a collection."""
    id: CollectionId
    idempotency_key: NotRequired[str]
    """Makes retries safe: requests with the same key and payload take effect once and get the same
    reply for 24 hours. Printable characters. Must equal the header `Idempotency-Key` if both are
    sent.
    """


CollectionMove = TypedDict(
    "CollectionMove",
    {
        # The name of a node that holds the collection.
        "from": str,
        # The name of a serving node that does not hold it and is not drained.
        "to": str,
    },
)
"""The node that gives up the collection, and the node that takes its place."""


class CollectionDeleted(TypedDict):
    """The collection is deleted."""
    id: CollectionId
    deleted: Literal[True]
    """Always true."""
    vector_count: int
    """The number of vectors that were deleted with it."""


VectorId: TypeAlias = str
"""The identifier of a vector, unique in its collection, compared byte for byte: 1 to 512 bytes of
UTF-8 without control characters. (HTTP clients remove the ids `.` and `..` from URLs; send those
in bodies.)
"""


NamedValues: TypeAlias = 'Mapping[str, Values | Sequence[Values]]'
"""Vectors by the names that the collection's `vectors` defines; a list of vectors if it has
`multi`. A record may have any or none of them.
"""


class SparseVector(TypedDict):
    """A sparse vector: distinct indices in any order, and the value of each. Stored as float32, in
    the order of the indices; values that are 0 or not finite as float32 are rejected.
    """
    indices: Sequence[int]
    """The indices of the elements that are not 0."""
    values: Sequence[float]
    """The value of each index, in the same order."""


SparseVectors: TypeAlias = Mapping[str, SparseVector]
"""Sparse vectors by the names that the collection's `sparse_vectors` defines. A record may have any
or none of them.
"""


class VectorInput(TypedDict):
    """A vector given by its values."""
    id: NotRequired[VectorId]
    """If absent, a ULID is generated and returned."""
    vectors: NotRequired[NamedValues]
    sparse_vectors: NotRequired[SparseVectors]
    metadata: NotRequired[JsonObject]
    if_sequence: NotRequired[int]
    """Writes only if the vector was last written at this sequence, or with 0 if it does not exist;
    otherwise 412 `precondition_failed`, and nothing of the request is written.
    """
    expires_at: NotRequired[str | None]
    """When the vector expires (RFC 3339); it is then deleted within about a second. Null: never.
    Absent: after `ttl_seconds` of the collection, if set.
    """
    values: Values


class TextInput(TypedDict):
    """A vector given by a text, which the model of the collection turns into its values."""
    id: NotRequired[VectorId]
    """If absent, a ULID is generated and returned."""
    vectors: NotRequired[NamedValues]
    sparse_vectors: NotRequired[SparseVectors]
    metadata: NotRequired[JsonObject]
    if_sequence: NotRequired[int]
    """Writes only if the vector was last written at this sequence, or with 0 if it does not exist;
    otherwise 412 `precondition_failed`, and nothing of the request is written.
    """
    expires_at: NotRequired[str | None]
    """When the vector expires (RFC 3339); it is then deleted within about a second. Null: never.
    Absent: after `ttl_seconds` of the collection, if set.
    """
    embed: str
    """A text in place of the vector, into which the model of the collection turns it."""


class RecordInput(TypedDict):
    """A record of a collection without the unnamed vector."""
    id: NotRequired[VectorId]
    """If absent, a ULID is generated and returned."""
    vectors: NotRequired[NamedValues]
    sparse_vectors: NotRequired[SparseVectors]
    metadata: NotRequired[JsonObject]
    if_sequence: NotRequired[int]
    """Writes only if the vector was last written at this sequence, or with 0 if it does not exist;
    otherwise 412 `precondition_failed`, and nothing of the request is written.
    """
    expires_at: NotRequired[str | None]
    """When the vector expires (RFC 3339); it is then deleted within about a second. Null: never.
    Absent: after `ttl_seconds` of the collection, if set.
    """


WriteMode: TypeAlias = Literal["upsert", "insert", "update"]
"""`upsert` writes every vector, `insert` rejects ids that exist (409), `update` rejects ids that do
not exist (404).
"""


class VectorBatchWrite(TypedDict):
    """Atomic: if one vector is invalid, nothing is written. Each id may occur once."""
    vectors: Sequence[VectorInput | TextInput | RecordInput]
    """The vectors to write."""
    mode: NotRequired[WriteMode]
    """Whether to write every vector, only new ones or only existing ones. By default `upsert`."""
    idempotency_key: NotRequired[str]
    """Makes retries safe: requests with the same key and payload take effect once and get the same
    reply for 24 hours. Printable characters. Must equal the header `Idempotency-Key` if both are
    sent.
    """


class VectorSingleWrite(TypedDict):
    """A vector given by its values."""
    id: NotRequired[VectorId]
    """If absent, a ULID is generated and returned."""
    vectors: NotRequired[NamedValues]
    sparse_vectors: NotRequired[SparseVectors]
    metadata: NotRequired[JsonObject]
    if_sequence: NotRequired[int]
    """Writes only if the vector was last written at this sequence, or with 0 if it does not exist;
    otherwise 412 `precondition_failed`, and nothing of the request is written.
    """
    expires_at: NotRequired[str | None]
    """When the vector expires (RFC 3339); it is then deleted within about a second. Null: never.
    Absent: after `ttl_seconds` of the collection, if set.
    """
    mode: NotRequired[WriteMode]
    """Whether to write every vector, only new ones or only existing ones. By default `upsert`."""
    idempotency_key: NotRequired[str]
    """Makes retries safe: requests with the same key and payload take effect once and get the same
    reply for 24 hours. Printable characters. Must equal the header `Idempotency-Key` if both are
    sent.
    """
    values: Values


class TextSingleWrite(TypedDict):
    """A vector given by a text, which the model of the collection turns into its values."""
    id: NotRequired[VectorId]
    """If absent, a ULID is generated and returned."""
    vectors: NotRequired[NamedValues]
    sparse_vectors: NotRequired[SparseVectors]
    metadata: NotRequired[JsonObject]
    if_sequence: NotRequired[int]
    """Writes only if the vector was last written at this sequence, or with 0 if it does not exist;
    otherwise 412 `precondition_failed`, and nothing of the request is written.
    """
    expires_at: NotRequired[str | None]
    """When the vector expires (RFC 3339); it is then deleted within about a second. Null: never.
    Absent: after `ttl_seconds` of the collection, if set.
    """
    mode: NotRequired[WriteMode]
    """Whether to write every vector, only new ones or only existing ones. By default `upsert`."""
    idempotency_key: NotRequired[str]
    """Makes retries safe: requests with the same key and payload take effect once and get the same
    reply for 24 hours. Printable characters. Must equal the header `Idempotency-Key` if both are
    sent.
    """
    embed: str
    """A text in place of the vector, into which the model of the collection turns it."""


class RecordSingleWrite(TypedDict):
    """A record of a collection without the unnamed vector."""
    id: NotRequired[VectorId]
    """If absent, a ULID is generated and returned."""
    vectors: NotRequired[NamedValues]
    sparse_vectors: NotRequired[SparseVectors]
    metadata: NotRequired[JsonObject]
    if_sequence: NotRequired[int]
    """Writes only if the vector was last written at this sequence, or with 0 if it does not exist;
    otherwise 412 `precondition_failed`, and nothing of the request is written.
    """
    expires_at: NotRequired[str | None]
    """When the vector expires (RFC 3339); it is then deleted within about a second. Null: never.
    Absent: after `ttl_seconds` of the collection, if set.
    """
    mode: NotRequired[WriteMode]
    """Whether to write every vector, only new ones or only existing ones. By default `upsert`."""
    idempotency_key: NotRequired[str]
    """Makes retries safe: requests with the same key and payload take effect once and get the same
    reply for 24 hours. Printable characters. Must equal the header `Idempotency-Key` if both are
    sent.
    """


VectorsToSet: TypeAlias = 'Mapping[str, Values | Sequence[Values] | None]'
"""Named vectors to set or, with null, to remove; the others are unchanged."""


class PatchInput(TypedDict):
    """The changes of a vector; the rest is unchanged."""
    id: VectorId
    """The id of an existing vector."""
    metadata: NotRequired[JsonObject]
    """A JSON merge patch (RFC 7396): members replace others, and null removes them."""
    values: NotRequired[Values]
    embed: NotRequired[str]
    """A text in place of the vector, into which the model of the collection turns it."""
    vectors: NotRequired[VectorsToSet]
    sparse_vectors: NotRequired[Mapping[str, SparseVector | None]]
    """The same for sparse vectors."""
    expires_at: NotRequired[str | None]
    """When the vector expires (RFC 3339); null for never. Absent: unchanged."""
    if_sequence: NotRequired[int]
    """Writes only if the vector was last written at this sequence, or with 0 if it does not exist;
    otherwise 412 `precondition_failed`, and nothing of the request is written.
    """


class VectorBatchPatch(TypedDict):
    """Changes of vectors that exist. Atomic: if one is invalid, nothing is written. Each id may
    occur once.
    """
    vectors: Sequence[PatchInput]
    """The vectors to change."""
    mode: Literal["patch"]
    """Changes the members that the request contains and leaves the rest unchanged; rejects ids that
    do not exist (404).
    """
    idempotency_key: NotRequired[str]
    """Makes retries safe: requests with the same key and payload take effect once and get the same
    reply for 24 hours. Printable characters. Must equal the header `Idempotency-Key` if both are
    sent.
    """


class VectorSinglePatch(TypedDict):
    """The change of one vector."""
    id: VectorId
    """The id of an existing vector."""
    metadata: NotRequired[JsonObject]
    """A JSON merge patch (RFC 7396): members replace others, and null removes them."""
    values: NotRequired[Values]
    embed: NotRequired[str]
    """A text in place of the vector, into which the model of the collection turns it."""
    vectors: NotRequired[VectorsToSet]
    sparse_vectors: NotRequired[Mapping[str, SparseVector | None]]
    """The same for sparse vectors."""
    expires_at: NotRequired[str | None]
    """When the vector expires (RFC 3339); null for never. Absent: unchanged."""
    if_sequence: NotRequired[int]
    """Writes only if the vector was last written at this sequence, or with 0 if it does not exist;
    otherwise 412 `precondition_failed`, and nothing of the request is written.
    """
    mode: Literal["patch"]
    """Changes the members that the request contains and leaves the rest unchanged; rejects ids that
    do not exist (404).
    """
    idempotency_key: NotRequired[str]
    """Makes retries safe: requests with the same key and payload take effect once and get the same
    reply for 24 hours. Printable characters. Must equal the header `Idempotency-Key` if both are
    sent.
    """


VectorWrite: TypeAlias = 'VectorBatchWrite | VectorSingleWrite | TextSingleWrite | RecordSingleWrite | VectorBatchPatch | VectorSinglePatch'
"""One or several vectors to write or change."""


class VectorsWritten(TypedDict):
    """Sent when the write is durable on disk and visible to every later read."""
    upserted_count: int
    """The number of written vectors."""
    inserted_count: int
    """The number of those that are new."""
    updated_count: int
    """The number of those that replaced another vector."""
    ids: NotRequired[Sequence[VectorId]]
    """All ids in the order of the body, if at least one was generated. Absent for streams."""
    batch_count: NotRequired[int]
    """For streams: the number of atomic writes."""
    resumed_count: NotRequired[int]
    """For streams: the rows that an earlier attempt with the same idempotency key had written."""
    sequence: int
    """The sequence of the last write that the reply reflects; usable as `min_sequence`."""


class ValuesPutAnywhere(TypedDict):
    """A vector given by its values."""
    id: NotRequired[VectorId]
    """If present, equal to the id in the path."""
    vectors: NotRequired[NamedValues]
    sparse_vectors: NotRequired[SparseVectors]
    metadata: NotRequired[JsonObject]
    if_sequence: NotRequired[int]
    """Writes only if the vector was last written at this sequence, or with 0 if it does not exist;
    otherwise 412 `precondition_failed`, and nothing of the request is written.
    """
    expires_at: NotRequired[str | None]
    """When the vector expires (RFC 3339); it is then deleted within about a second. Null: never.
    Absent: after `ttl_seconds` of the collection, if set.
    """
    collection: NotRequired[str]
    """The id or an alias of the collection; by default the one that the server is configured with,
    if any.
    """
    values: Values


class TextPutAnywhere(TypedDict):
    """A vector given by a text, which the model of the collection turns into its values."""
    id: NotRequired[VectorId]
    """If present, equal to the id in the path."""
    vectors: NotRequired[NamedValues]
    sparse_vectors: NotRequired[SparseVectors]
    metadata: NotRequired[JsonObject]
    if_sequence: NotRequired[int]
    """Writes only if the vector was last written at this sequence, or with 0 if it does not exist;
    otherwise 412 `precondition_failed`, and nothing of the request is written.
    """
    expires_at: NotRequired[str | None]
    """When the vector expires (RFC 3339); it is then deleted within about a second. Null: never.
    Absent: after `ttl_seconds` of the collection, if set.
    """
    collection: NotRequired[str]
    """The id or an alias of the collection; by default the one that the server is configured with,
    if any.
    """
    embed: str
    """A text in place of the vector, into which the model of the collection turns it."""


class RecordPutAnywhere(TypedDict):
    """A record of a collection without the unnamed vector."""
    id: NotRequired[VectorId]
    """If present, equal to the id in the path."""
    vectors: NotRequired[NamedValues]
    sparse_vectors: NotRequired[SparseVectors]
    metadata: NotRequired[JsonObject]
    if_sequence: NotRequired[int]
    """Writes only if the vector was last written at this sequence, or with 0 if it does not exist;
    otherwise 412 `precondition_failed`, and nothing of the request is written.
    """
    expires_at: NotRequired[str | None]
    """When the vector expires (RFC 3339); it is then deleted within about a second. Null: never.
    Absent: after `ttl_seconds` of the collection, if set.
    """
    collection: NotRequired[str]
    """The id or an alias of the collection; by default the one that the server is configured with,
    if any.
    """


VectorPut: TypeAlias = 'ValuesPutAnywhere | TextPutAnywhere | RecordPutAnywhere'
"""A vector that replaces the one with the id, and its collection."""


class VectorReplaced(TypedDict):
    """The vector is written."""
    id: VectorId
    collection: CollectionId
    created: bool
    """Whether there was no vector with the id."""
    sequence: int
    """The sequence of the last write that the reply reflects; usable as `min_sequence`."""


class ValuesPut(TypedDict):
    """A vector given by its values."""
    id: NotRequired[VectorId]
    """If present, equal to the id in the path."""
    vectors: NotRequired[NamedValues]
    sparse_vectors: NotRequired[SparseVectors]
    metadata: NotRequired[JsonObject]
    if_sequence: NotRequired[int]
    """Writes only if the vector was last written at this sequence, or with 0 if it does not exist;
    otherwise 412 `precondition_failed`, and nothing of the request is written.
    """
    expires_at: NotRequired[str | None]
    """When the vector expires (RFC 3339); it is then deleted within about a second. Null: never.
    Absent: after `ttl_seconds` of the collection, if set.
    """
    values: Values


class TextPut(TypedDict):
    """A vector given by a text, which the model of the collection turns into its values."""
    id: NotRequired[VectorId]
    """If present, equal to the id in the path."""
    vectors: NotRequired[NamedValues]
    sparse_vectors: NotRequired[SparseVectors]
    metadata: NotRequired[JsonObject]
    if_sequence: NotRequired[int]
    """Writes only if the vector was last written at this sequence, or with 0 if it does not exist;
    otherwise 412 `precondition_failed`, and nothing of the request is written.
    """
    expires_at: NotRequired[str | None]
    """When the vector expires (RFC 3339); it is then deleted within about a second. Null: never.
    Absent: after `ttl_seconds` of the collection, if set.
    """
    embed: str
    """A text in place of the vector, into which the model of the collection turns it."""


class RecordPut(TypedDict):
    """A record of a collection without the unnamed vector."""
    id: NotRequired[VectorId]
    """If present, equal to the id in the path."""
    vectors: NotRequired[NamedValues]
    sparse_vectors: NotRequired[SparseVectors]
    metadata: NotRequired[JsonObject]
    if_sequence: NotRequired[int]
    """Writes only if the vector was last written at this sequence, or with 0 if it does not exist;
    otherwise 412 `precondition_failed`, and nothing of the request is written.
    """
    expires_at: NotRequired[str | None]
    """When the vector expires (RFC 3339); it is then deleted within about a second. Null: never.
    Absent: after `ttl_seconds` of the collection, if set.
    """


VectorPutInCollection: TypeAlias = 'ValuesPut | TextPut | RecordPut'
"""A vector that replaces the one with the id."""


class VectorPatch(TypedDict):
    """`metadata` is a JSON merge patch (RFC 7396): null removes a member. `values` replaces the
    values.
    """
    metadata: NotRequired[JsonObject]
    """A JSON merge patch (RFC 7396): members replace others, and null removes them."""
    values: NotRequired[Values]
    embed: NotRequired[str]
    """A text in place of the vector, into which the model of the collection turns it."""
    vectors: NotRequired[VectorsToSet]
    sparse_vectors: NotRequired[Mapping[str, SparseVector | None]]
    """The same for sparse vectors."""
    expires_at: NotRequired[str | None]
    """When the vector expires (RFC 3339); null for never. Absent: unchanged."""
    if_sequence: NotRequired[int]
    """Writes only if the vector was last written at this sequence, or with 0 if it does not exist;
    otherwise 412 `precondition_failed`, and nothing of the request is written.
    """


class VectorPatched(TypedDict):
    """The vector is changed."""
    id: VectorId
    sequence: int
    """The sequence of the last write that the reply reflects; usable as `min_sequence`."""


class VectorDeleted(TypedDict):
    """The vector is deleted."""
    id: VectorId
    deleted: Literal[True]
    """Always true."""
    sequence: int
    """The sequence of the last write that the reply reflects; usable as `min_sequence`."""


class VectorDelete(TypedDict):
    """Exactly one of `ids`, `filter` and `all`."""
    ids: NotRequired[Sequence[VectorId]]
    """The vectors with these ids."""
    filter: NotRequired[JsonObject]
    """The vectors that pass. It has at least one condition."""
    all: NotRequired[Literal[True]]
    """Every vector of the collection."""
    dry_run: NotRequired[bool]
    """Only count the vectors that would be deleted. By default `false`."""
    idempotency_key: NotRequired[str]
    """Makes retries safe: requests with the same key and payload take effect once and get the same
    reply for 24 hours. Printable characters. Must equal the header `Idempotency-Key` if both are
    sent.
    """


Warning = TypedDict(
    "Warning",
    {
        # The kind of the warning.
        "code": Literal["unknown_path"],
        # The member of the request that names the path.
        "in": str,
        # The path.
        "path": str,
        # A sentence for people.
        "detail": str,
    },
)
"""Something in the request that is allowed, but probably a mistake."""


class VectorsDeleted(TypedDict):
    """The number of deleted vectors."""
    deleted_count: int
    """The number of vectors that were deleted or, with `dry_run`, would be."""
    sequence: int
    """The sequence of the last write that the reply reflects; usable as `min_sequence`."""
    warnings: NotRequired[Sequence[Warning]]
    """Metadata paths in the request that no vector of the collection has, or had before a write; on
    the first page, and absent if there are none.
    """


class VectorUpdate(TypedDict):
    """Exactly one of `ids`, `filter` and `all`, and one of `patch` and `metadata`."""
    ids: NotRequired[Sequence[VectorId]]
    """The vectors with these ids."""
    filter: NotRequired[JsonObject]
    """The vectors that pass. It has at least one condition."""
    all: NotRequired[Literal[True]]
    """Every vector of the collection."""
    patch: NotRequired[JsonObject]
    """A JSON merge patch (RFC 7396) of the metadata: null removes a member."""
    metadata: NotRequired[JsonObject]
    """Replaces the metadata."""
    limit: NotRequired[int]
    """The maximum number of vectors to change, in insertion order."""
    idempotency_key: NotRequired[str]
    """Makes retries safe: requests with the same key and payload take effect once and get the same
    reply for 24 hours. Printable characters. Must equal the header `Idempotency-Key` if both are
    sent.
    """


class VectorsUpdated(TypedDict):
    """The number of changed vectors."""
    updated_count: int
    """The number of vectors that changed. Vectors that already had the new metadata do not count.
    """
    has_more: bool
    """Whether `limit` left vectors unchanged that still need the change."""
    sequence: int
    """The sequence of the last write that the reply reflects; usable as `min_sequence`."""
    warnings: NotRequired[Sequence[Warning]]
    """Metadata paths in the request that no vector of the collection has, or had before a write; on
    the first page, and absent if there are none.
    """


class Vector(TypedDict):
    """A stored vector, or the requested members of it."""
    id: VectorId
    values: NotRequired[Values]
    vectors: NotRequired[NamedValues]
    """The named vectors of the record, if `values` are requested; only in a collection with named
    vectors.
    """
    sparse_vectors: NotRequired[SparseVectors]
    """The same for sparse vectors."""
    metadata: NotRequired[JsonObject]
    sequence: NotRequired[int]
    """The sequence at which the vector was last written, for `if_sequence`; if requested."""
    expires_at: NotRequired[str]
    """The expiry, if any; only if one vector is read or several are fetched."""


class VectorList(TypedDict):
    """A page of the vectors of a collection."""
    vectors: Sequence[Vector]
    """In insertion order, or as `sort` says."""
    next_cursor: NotRequired[str]
    """The token of the next page; absent on the last page."""
    has_more: bool
    """Whether there is another page."""
    total: NotRequired[int]
    """The vectors that pass the filter; only when paging by `offset` or with `sort`."""
    warnings: NotRequired[Sequence[Warning]]
    """Metadata paths in the request that no vector of the collection has, or had before a write; on
    the first page, and absent if there are none.
    """


class SortKey(TypedDict):
    """A sort key; later keys break ties of earlier ones."""
    field: str
    """A path in the metadata, or `$id` for the id; in queries also `id`, and `score`."""
    order: NotRequired[Literal["asc", "desc"]]
    """Ascending or descending. By default `asc`."""


IncludeMetadata: TypeAlias = 'bool | Sequence[str]'
"""Whether to return metadata, or the paths to return."""


class VectorListRequest(TypedDict):
    """A page of a list; the members are the parameters of the same request by GET."""
    limit: NotRequired[int]
    """Page size. By default `100`."""
    offset: NotRequired[int]
    """The number of records to skip. Pages shift when data changes between requests, except
    together with a `cursor`, which fixes the snapshot.
    """
    cursor: NotRequired[str]
    """The `next_cursor` of another page, whose snapshot it names. Send it alone or with the same
    fields as for the first page; with an `offset` for any page.
    """
    filter: NotRequired[JsonObject]
    """Only the vectors that pass."""
    sort: NotRequired[Sequence[SortKey]]
    """The order of the list, for at most 16777216 vectors: numbers before strings before booleans
    before vectors without any of them at the path, in both directions; ties in insertion order.
    By default insertion order.
    """
    include_metadata: NotRequired[IncludeMetadata]
    """Whether to return `metadata`; with a list of paths, only these, within their enclosing
    objects. By default `true`.
    """
    include_values: NotRequired[IncludeValues]
    """Whether to return `values`, and `vectors` and `sparse_vectors` if there are any. By default
    `false`.
    """


class VectorListRequestAnywhere(TypedDict):
    """A page of a list, and its collection."""
    collection: NotRequired[str]
    """The id or an alias of the collection; by default the one that the server is configured with,
    if any.
    """
    limit: NotRequired[int]
    """Page size. By default `100`."""
    offset: NotRequired[int]
    """The number of records to skip. Pages shift when data changes between requests, except
    together with a `cursor`, which fixes the snapshot.
    """
    cursor: NotRequired[str]
    """The `next_cursor` of another page, whose snapshot it names. Send it alone or with the same
    fields as for the first page; with an `offset` for any page.
    """
    filter: NotRequired[JsonObject]
    """Only the vectors that pass."""
    sort: NotRequired[Sequence[SortKey]]
    """The order of the list, for at most 16777216 vectors: numbers before strings before booleans
    before vectors without any of them at the path, in both directions; ties in insertion order.
    By default insertion order.
    """
    include_metadata: NotRequired[IncludeMetadata]
    """Whether to return `metadata`; with a list of paths, only these, within their enclosing
    objects. By default `true`.
    """
    include_values: NotRequired[IncludeValues]
    """Whether to return `values`, and `vectors` and `sparse_vectors` if there are any. By default
    `false`.
    """


class VectorFetch(TypedDict):
    """The vectors to read, and which of their members."""
    ids: Sequence[VectorId]
    """The vectors to read."""
    include_values: NotRequired[IncludeValues]
    """Whether to return `values`, and `vectors` and `sparse_vectors` if there are any. By default
    `true`.
    """
    include_metadata: NotRequired[IncludeMetadata]
    """Whether to return `metadata`; with a list of paths, only these, within their enclosing
    objects. By default `true`.
    """
    include_sequence: NotRequired[bool]
    """Whether to return `sequence`. By default `false`."""


class VectorsFetched(TypedDict):
    """The requested vectors."""
    vectors: Sequence[Vector]
    """In the order of the requested ids."""
    not_found: Sequence[VectorId]
    """The ids that do not exist."""


class VectorCount(TypedDict):
    """What to count."""
    filter: NotRequired[JsonObject]
    """The vectors to count; by default all."""


class VectorsCounted(TypedDict):
    """The number of vectors."""
    count: int
    """The vectors that pass the filter."""
    warnings: NotRequired[Sequence[Warning]]
    """Metadata paths in the request that no vector of the collection has, or had before a write; on
    the first page, and absent if there are none.
    """


MultiVector: TypeAlias = Sequence[Values]
"""Vectors to compare with the multi-vector `using` of records. The score is MaxSim: the sum over
these vectors of the highest score (cosine or dot product) with any vector of the record.
"""


Example: TypeAlias = 'VectorId | Values'
"""A stored vector by its id, or the values of a vector as an array of numbers."""


class Recommend(TypedDict):
    """Finds vectors by at most 64 examples."""
    positive: NotRequired[Sequence[Example]]
    """What the result should be near to. By default `[]`."""
    negative: NotRequired[Sequence[Example]]
    """What the result should not be near to. By default `[]`."""
    strategy: NotRequired[Literal["average_vector", "best_score", "sum_scores"]]
    """`average_vector`: searches with the mean of the positive examples, or with twice that mean
    minus the mean of the negative ones; under `cosine` of examples of length 1. `best_score`:
    with the highest scores p of a vector with a positive and n with a negative example, its
    score is s(p) if p > n, else -s(n), where s(x) = (1 + x / (1 + |x|)) / 2. `sum_scores`: the
    sum of its scores with the positive examples, minus that with the negative ones. The last two
    need no positive example, and their matches have no `distance`. By default `average_vector`.
    """
    include_examples: NotRequired[bool]
    """Whether examples that are given by their ids may be in the result. By default `false`."""


class ExamplePair(TypedDict):
    """Two examples; the result should be nearer to the positive one."""
    positive: Example
    negative: Example


class Discover(TypedDict):
    """Finds vectors on the positive side of pairs of examples, of which there are at most 64 with
    the target. With a target, a vector scores 1 for each pair whose positive is nearer, -1 for
    each whose negative is, plus s(its score with the target), s as for `best_score`. Without
    one, its score is the sum of d / (1 + |d|) over the pairs, where d = min(0, score with the
    positive - score with the negative). Matches have no `distance`.
    """
    target: NotRequired[Example]
    """What the result should be near to."""
    context: NotRequired[Sequence[ExamplePair]]
    """Pairs; the result should be nearer to the positive example of each. By default `[]`."""
    include_examples: NotRequired[bool]
    """Whether examples that are given by their ids may be in the result. By default `false`."""


class TextQuery(TypedDict):
    """Words to search for in place of a vector. Matches are ranked by BM25. Only for collections
    with `text`.
    """
    query: str
    """Text whose words are searched for, in any order: at most 256 different ones. A word that
    occurs twice counts twice.
    """
    match: NotRequired[Literal["any", "all"]]
    """Whether vectors must contain any of the words or all of them. By default `any`."""


class FusionPart(TypedDict):
    """One ranking of a fusion: exactly one of `vector`, `id`, `multi_vector`, `embed`, `recommend`,
    `discover`, `text` and `sparse`.
    """
    vector: NotRequired[Values]
    """A vector to search with."""
    id: NotRequired[VectorId]
    """A stored vector to search with. It is excluded from its own result."""
    multi_vector: NotRequired[MultiVector]
    embed: NotRequired[str]
    """A text in place of the vector, into which the model of the collection turns it."""
    recommend: NotRequired[Recommend]
    discover: NotRequired[Discover]
    text: NotRequired[TextQuery]
    sparse: NotRequired[SparseVector]
    """A sparse vector, compared with the sparse vector `using` by the dot product. Vectors without
    a common index are excluded.
    """
    using: NotRequired[VectorName]
    """The named vector to search instead of the unnamed one; with `sparse`, the sparse vector.
    Records without it are excluded.
    """
    metric: NotRequired[Metric]
    """Used instead of the collection's metric."""
    filter: NotRequired[JsonObject]
    """Vectors must pass this filter and that of the query."""
    limit: NotRequired[int]
    """The number of best vectors that the part ranks, by default all that pass. A limit is faster.
    """
    weight: NotRequired[float]
    """The weight relative to the other parts. By default `1`."""


class Fusion(TypedDict):
    """Combines several rankings: the score of a vector is the sum of its contributions from each
    part that ranks it. Ranks are those among all vectors that pass the filters and that the part
    can rank. Vectors that parts name by `id` have a rank but are excluded from the result.
    """
    kind: NotRequired[Literal["rrf", "weighted"]]
    """`rrf`: weight / (`rank_constant` + rank), the best having rank 1. `weighted`: weight * score.
    By default `rrf`.
    """
    rank_constant: NotRequired[int]
    """For `rrf`: the larger it is, the less the first ranks dominate. By default `60`."""
    normalize: NotRequired[Literal["none", "max"]]
    """For `weighted`: `max` divides the scores of each part by the absolute value of its best one.
    By default `none`.
    """
    parts: Sequence[FusionPart]
    """The rankings."""


class Prefetch(TypedDict):
    """A first stage: the query searches only the best vectors by another ranking, exactly. It has
    exactly one of `vector`, `id`, `multi_vector`, `embed`, `recommend`, `discover`, `text`,
    `sparse` and `fusion`.
    """
    vector: NotRequired[Values]
    """A vector to search with."""
    id: NotRequired[VectorId]
    """A stored vector to search with. It is excluded from its own result."""
    multi_vector: NotRequired[MultiVector]
    embed: NotRequired[str]
    """A text in place of the vector, into which the model of the collection turns it."""
    recommend: NotRequired[Recommend]
    discover: NotRequired[Discover]
    text: NotRequired[TextQuery]
    sparse: NotRequired[SparseVector]
    """A sparse vector, compared with the sparse vector `using` by the dot product. Vectors without
    a common index are excluded.
    """
    using: NotRequired[VectorName]
    """The named vector to search instead of the unnamed one; with `sparse`, the sparse vector.
    Records without it are excluded.
    """
    metric: NotRequired[Metric]
    """Used instead of the collection's metric."""
    fusion: NotRequired[Fusion]
    filter: NotRequired[JsonObject]
    """Vectors must pass this filter and that of the query."""
    limit: int
    """The number of vectors that the query searches."""


Mmr = TypedDict(
    "Mmr",
    {
        # From 0, which prefers what is different, to 1, which keeps the order. By default `0.5`.
        "lambda": NotRequired[float],
        # The number of nearest vectors to choose from; by default 100, or `top_k` if that is more.
        "candidates": NotRequired[int],
    },
)
"""Diversifies the result by maximal marginal relevance: the nearest candidate comes first, then
repeatedly the one with the highest `lambda` * its score - (1 - `lambda`) * its highest score
with an earlier match, the first of equal ones. `top_k` is at most the number of candidates. Not
together with `sort` or `group_by`.
"""


class FacetRequest(TypedDict):
    """A path whose values are counted."""
    path: str
    """A path in the metadata, as in filters."""
    limit: NotRequired[int]
    """The number of values to return. By default `10`."""
    ignore_own_filter: NotRequired[bool]
    """Whether this facet ignores the conditions of the filter on its own path, so that it also
    contains values that are not selected. The conditions still apply to the other facets and the
    rest of the reply. By default `false`.
    """


class HistogramRequest(TypedDict):
    """Buckets of equal width from `min` to `max`; a single bucket if all numbers are equal."""
    bucket_count: NotRequired[int]
    """The number of buckets. By default `10`."""
    min: NotRequired[float]
    """By default the least number."""
    max: NotRequired[float]
    """By default the greatest number."""


class StatsRequest(TypedDict):
    """A path whose numbers are summarized."""
    path: str
    """A path in the metadata, as in filters."""
    histogram: NotRequired[HistogramRequest]
    """Buckets of the numbers; absent for no histogram."""


class ScoreStatsRequest(TypedDict):
    """Summarizes the scores, as replies show them, of all vectors that pass the filter and have at
    least `score_threshold`. Every one of them is scored, which takes longer than a search.
    """
    histogram: NotRequired[HistogramRequest]
    """Buckets of the numbers; absent for no histogram."""


class Query(TypedDict):
    """Exactly one of `vector`, `id`, `multi_vector`, `embed`, `recommend`, `discover`, `text`,
    `sparse` and `fusion`, or a `cursor` alone. `limit`, `offset` and `cursor` may be in the
    query string instead.
    """
    vector: NotRequired[Values]
    """A vector to search with."""
    id: NotRequired[VectorId]
    """A stored vector to search with. It is excluded from its own result."""
    multi_vector: NotRequired[MultiVector]
    embed: NotRequired[str]
    """A text in place of the vector, into which the model of the collection turns it."""
    recommend: NotRequired[Recommend]
    discover: NotRequired[Discover]
    text: NotRequired[TextQuery]
    sparse: NotRequired[SparseVector]
    """A sparse vector, compared with the sparse vector `using` by the dot product. Vectors without
    a common index are excluded.
    """
    using: NotRequired[VectorName]
    """The named vector to search instead of the unnamed one; with `sparse`, the sparse vector.
    Records without it are excluded.
    """
    metric: NotRequired[Metric]
    """Used instead of the collection's metric."""
    fusion: NotRequired[Fusion]
    prefetch: NotRequired[Prefetch]
    mmr: NotRequired[Mmr]
    top_k: NotRequired[int]
    """The number of nearest vectors to return, 10 if neither `limit`, `score_threshold` nor
    `cursor` says otherwise: at most 10000 without `limit`, which returns them in pages. With
    `limit` and no `top_k` the pages go through all vectors that pass the filter; with
    `score_threshold` and no `top_k`, through all that have at least that score.
    """
    limit: NotRequired[int]
    """Page size. By default `top_k`, or the default page size if that is absent too."""
    offset: NotRequired[int]
    """The number of records to skip. Large offsets cost more, and pages shift when data changes
    between requests; a cursor avoids both. Not together with `cursor`.
    """
    cursor: NotRequired[str]
    """The `next_cursor` of the previous page. Send it alone or with the same fields as for the
    first page. Not together with `offset`.
    """
    filter: NotRequired[JsonObject]
    """Applied to the whole collection before scoring: the reply has min(top_k, vectors that pass)
    matches.
    """
    include_metadata: NotRequired[IncludeMetadata]
    """Whether matches contain metadata; with a list of paths, only these, within their enclosing
    objects. By default `false`.
    """
    include_values: NotRequired[IncludeValues]
    """`base64` returns vectors as base64 of little-endian float32. By default `false`."""
    include_sequence: NotRequired[bool]
    """Whether matches contain `sequence`, for use in `if_sequence` of a write. By default `false`.
    """
    sort: NotRequired[Sequence[SortKey]]
    """Sorts the `top_k` nearest vectors, at most 10000, in another order."""
    group_by: NotRequired[str]
    """Returns the best matches of each distinct value of a metadata path: the groups whose best
    match is nearest, each with its `group_size` nearest vectors. `top_k`, `limit` and `offset`
    then count groups. A vector without a value (missing, null, an object, an array without
    scalars) is in no group; an array is in the group of each of its distinct elements. With
    `limit` or `score_threshold` and no `top_k`: all groups, at most 10000. Not together with
    `sort`.
    """
    group_size: NotRequired[int]
    """The number of matches per group; with 1, all matches have distinct values unless these are
    arrays. A page has at most 10000 matches. By default `1`.
    """
    score_threshold: NotRequired[float]
    """Return only matches with at least this score, compared with scores as replies show them.
    Without `top_k` all such matches are returned, in pages of `limit` (default 100). With `sort`
    only the `top_k` nearest are considered.
    """
    min_sequence: NotRequired[int]
    """Answer from a snapshot that includes the write with this sequence."""
    facets: NotRequired[Sequence[FacetRequest]]
    """Counts the values of each path over all vectors that pass the filter. The count of a value is
    the number of vectors that the filter `{path: value}` selects: strings, numbers and booleans
    count, and an array counts once for each of its distinct elements.
    """
    stats: NotRequired[Sequence[StatsRequest]]
    """Summarizes the numbers of each path over all vectors that pass the filter; other values are
    ignored.
    """
    score_stats: NotRequired[ScoreStatsRequest]
    explain: NotRequired[bool]
    """Whether the reply contains `explain`: how the result was found. By default `false`."""


class Match(TypedDict):
    """A vector that was found."""
    id: VectorId
    score: float
    """A higher score is better, for every metric."""
    distance: NotRequired[float]
    """The L2 distance; `euclidean` only."""
    group: NotRequired[str | float | bool]
    """The value of its group; only with `group_by`."""
    sequence: NotRequired[int]
    """The sequence of its last write; only with `include_sequence`."""
    metadata: NotRequired[JsonObject]
    values: NotRequired[Values]
    vectors: NotRequired[NamedValues]
    sparse_vectors: NotRequired[SparseVectors]


class FacetValue(TypedDict):
    """A value and how often it occurs."""
    value: str | float | bool
    """A value at the path."""
    count: int
    """The vectors that have this value."""


class Facet(TypedDict):
    """The values at a path."""
    path: str
    """The path in the metadata."""
    values: Sequence[FacetValue]
    """The most frequent first. Equal counts: numbers before strings before booleans, each in
    ascending order.
    """
    distinct_count: int
    """All distinct values, returned or not."""
    missing_count: int
    """The vectors without a value."""


HistogramBucket = TypedDict(
    "HistogramBucket",
    {
        # The least number that belongs to the bucket.
        "from": float,
        # Belongs to the next bucket, except in the last one.
        "to": float,
        # The numbers in the bucket.
        "count": int,
    },
)
"""A range of numbers and how many are in it."""


class Histogram(TypedDict):
    """How numbers are distributed."""
    buckets: Sequence[HistogramBucket]
    """In ascending order."""
    below_count: int
    """Numbers below `min`."""
    above_count: int
    """Numbers above `max`."""


class Stats(TypedDict):
    """A summary of the numbers at a path."""
    path: str
    """The path in the metadata."""
    count: int
    """The number of numbers; each number in an array counts."""
    missing_count: int
    """The vectors without a number."""
    min: NotRequired[float]
    """The least number. Absent without numbers, like the following members."""
    max: NotRequired[float]
    """The greatest number."""
    sum: NotRequired[float]
    """The exact sum of the float64 values, rounded once."""
    mean: NotRequired[float]
    """The exact mean, rounded once."""
    histogram: NotRequired[Histogram]


class ScoreStats(TypedDict):
    """A summary of scores."""
    count: int
    """The vectors whose scores are summarized."""
    min: NotRequired[float]
    """The least number. Absent without numbers, like the following members."""
    max: NotRequired[float]
    """The greatest number."""
    sum: NotRequired[float]
    """The exact sum of the float64 values, rounded once."""
    mean: NotRequired[float]
    """The exact mean, rounded once."""
    histogram: NotRequired[Histogram]


class Explain(TypedDict):
    """How the result was found."""
    engine: str
    """How the result was found: the name of an engine; `text`, `sparse` or `fusion` for queries
    with these; `max_sim` for multi-vectors.
    """
    segment_count: int
    """The segments of the snapshot."""
    rows_scanned: int
    """The rows that were compared with the query."""
    rows_passed_filter: int
    """The rows that pass the filter."""
    candidates_rescored: int
    """The rows whose exact scores were computed."""
    is_certified: bool
    """Whether no vector outside the result can have a higher score than one in it."""
    embed_ms: NotRequired[float]
    """Milliseconds for turning texts into vectors."""
    filter_ms: float
    """Milliseconds for the filter."""
    search_ms: float
    """Milliseconds for the search."""
    assemble_ms: float
    """Milliseconds for making the reply."""


class QueryReply(TypedDict):
    """A page of matches."""
    matches: Sequence[Match]
    """The nearest first, or as `sort` says."""
    next_cursor: NotRequired[str]
    """The token of the next page; absent on the last page."""
    has_more: bool
    """Whether there is another page."""
    total: NotRequired[int]
    """The exact number of vectors that pass the filter and that the query ranks: with `text` or
    `sparse` those that match, with `fusion` those that any part ranks. Present on the first page
    and on pages with an `offset`.
    """
    sequence: int
    """The sequence of the last write that the reply reflects; usable as `min_sequence`."""
    facets: NotRequired[Sequence[Facet]]
    """In the order of the request."""
    stats: NotRequired[Sequence[Stats]]
    """In the order of the request."""
    score_stats: NotRequired[ScoreStats]
    warnings: NotRequired[Sequence[Warning]]
    """Metadata paths in the request that no vector of the collection has, or had before a write; on
    the first page, and absent if there are none.
    """
    explain: NotRequired[Explain]


class QueryAnywhere(TypedDict):
    """Exactly one of `vector`, `id`, `multi_vector`, `embed`, `recommend`, `discover`, `text`,
    `sparse` and `fusion`, or a `cursor` alone. `limit`, `offset` and `cursor` may be in the
    query string instead.
    """
    collection: NotRequired[str]
    """The id or an alias of the collection; by default the one that the server is configured with,
    if any.
    """
    vector: NotRequired[Values]
    """A vector to search with."""
    id: NotRequired[VectorId]
    """A stored vector to search with. It is excluded from its own result."""
    multi_vector: NotRequired[MultiVector]
    embed: NotRequired[str]
    """A text in place of the vector, into which the model of the collection turns it."""
    recommend: NotRequired[Recommend]
    discover: NotRequired[Discover]
    text: NotRequired[TextQuery]
    sparse: NotRequired[SparseVector]
    """A sparse vector, compared with the sparse vector `using` by the dot product. Vectors without
    a common index are excluded.
    """
    using: NotRequired[VectorName]
    """The named vector to search instead of the unnamed one; with `sparse`, the sparse vector.
    Records without it are excluded.
    """
    metric: NotRequired[Metric]
    """Used instead of the collection's metric."""
    fusion: NotRequired[Fusion]
    prefetch: NotRequired[Prefetch]
    mmr: NotRequired[Mmr]
    top_k: NotRequired[int]
    """The number of nearest vectors to return, 10 if neither `limit`, `score_threshold` nor
    `cursor` says otherwise: at most 10000 without `limit`, which returns them in pages. With
    `limit` and no `top_k` the pages go through all vectors that pass the filter; with
    `score_threshold` and no `top_k`, through all that have at least that score.
    """
    limit: NotRequired[int]
    """Page size. By default `top_k`, or the default page size if that is absent too."""
    offset: NotRequired[int]
    """The number of records to skip. Large offsets cost more, and pages shift when data changes
    between requests; a cursor avoids both. Not together with `cursor`.
    """
    cursor: NotRequired[str]
    """The `next_cursor` of the previous page. Send it alone or with the same fields as for the
    first page. Not together with `offset`.
    """
    filter: NotRequired[JsonObject]
    """Applied to the whole collection before scoring: the reply has min(top_k, vectors that pass)
    matches.
    """
    include_metadata: NotRequired[IncludeMetadata]
    """Whether matches contain metadata; with a list of paths, only these, within their enclosing
    objects. By default `false`.
    """
    include_values: NotRequired[IncludeValues]
    """`base64` returns vectors as base64 of little-endian float32. By default `false`."""
    include_sequence: NotRequired[bool]
    """Whether matches contain `sequence`, for use in `if_sequence` of a write. By default `false`.
    """
    sort: NotRequired[Sequence[SortKey]]
    """Sorts the `top_k` nearest vectors, at most 10000, in another order."""
    group_by: NotRequired[str]
    """Returns the best matches of each distinct value of a metadata path: the groups whose best
    match is nearest, each with its `group_size` nearest vectors. `top_k`, `limit` and `offset`
    then count groups. A vector without a value (missing, null, an object, an array without
    scalars) is in no group; an array is in the group of each of its distinct elements. With
    `limit` or `score_threshold` and no `top_k`: all groups, at most 10000. Not together with
    `sort`.
    """
    group_size: NotRequired[int]
    """The number of matches per group; with 1, all matches have distinct values unless these are
    arrays. A page has at most 10000 matches. By default `1`.
    """
    score_threshold: NotRequired[float]
    """Return only matches with at least this score, compared with scores as replies show them.
    Without `top_k` all such matches are returned, in pages of `limit` (default 100). With `sort`
    only the `top_k` nearest are considered.
    """
    min_sequence: NotRequired[int]
    """Answer from a snapshot that includes the write with this sequence."""
    facets: NotRequired[Sequence[FacetRequest]]
    """Counts the values of each path over all vectors that pass the filter. The count of a value is
    the number of vectors that the filter `{path: value}` selects: strings, numbers and booleans
    count, and an array counts once for each of its distinct elements.
    """
    stats: NotRequired[Sequence[StatsRequest]]
    """Summarizes the numbers of each path over all vectors that pass the filter; other values are
    ignored.
    """
    score_stats: NotRequired[ScoreStatsRequest]
    explain: NotRequired[bool]
    """Whether the reply contains `explain`: how the result was found. By default `false`."""


class QueryBatch(TypedDict):
    """Several queries of one collection."""
    queries: Sequence[Query]
    """The queries. Those without a `cursor` use the same snapshot."""


class QueryBatchReply(TypedDict):
    """The reply to each query."""
    results: Sequence[QueryReply]
    """In the order of the queries."""


class Recall(TypedDict):
    """The results of another search, to compare with the exact ones."""
    vectors: Sequence[Values]
    """The query vectors of the other search."""
    ids: Sequence[Sequence[VectorId]]
    """For each vector, the ids to grade; their number is k."""
    using: NotRequired[VectorName]
    """The named vector to search instead of the unnamed one; with `sparse`, the sparse vector.
    Records without it are excluded.
    """
    filter: NotRequired[JsonObject]
    """Only vectors that pass count as nearest."""
    metric: NotRequired[Metric]
    """Used instead of the collection's metric."""
    min_sequence: NotRequired[int]
    """Answer from a snapshot that includes the write with this sequence."""


class RecallReply(TypedDict):
    """The share of the exact results that the other search found."""
    recall: float
    """The mean of `recalls`."""
    query_count: int
    """The number of query vectors."""
    k: NotRequired[int]
    """The length of the lists of ids, if it is the same for all of them."""
    recalls: Sequence[float]
    """The recall of each query."""
    sequence: int
    """The sequence of the last write that the reply reflects; usable as `min_sequence`."""
    warnings: NotRequired[Sequence[Warning]]
    """Metadata paths in the request that no vector of the collection has, or had before a write; on
    the first page, and absent if there are none.
    """


class Aggregate(TypedDict):
    """What to count and summarize."""
    filter: NotRequired[JsonObject]
    """Only the vectors that pass."""
    facets: NotRequired[Sequence[FacetRequest]]
    """Counts the values of each path over all vectors that pass the filter. The count of a value is
    the number of vectors that the filter `{path: value}` selects: strings, numbers and booleans
    count, and an array counts once for each of its distinct elements.
    """
    stats: NotRequired[Sequence[StatsRequest]]
    """Summarizes the numbers of each path over all vectors that pass the filter; other values are
    ignored.
    """
    min_sequence: NotRequired[int]
    """Answer from a snapshot that includes the write with this sequence."""


class AggregateReply(TypedDict):
    """What was counted and summarized."""
    count: int
    """The vectors that pass the filter."""
    facets: NotRequired[Sequence[Facet]]
    """In the order of the request."""
    stats: NotRequired[Sequence[Stats]]
    """In the order of the request."""
    sequence: int
    """The sequence of the last write that the reply reflects; usable as `min_sequence`."""
    warnings: NotRequired[Sequence[Warning]]
    """Metadata paths in the request that no vector of the collection has, or had before a write; on
    the first page, and absent if there are none.
    """


class TypeCounts(TypedDict):
    """Values by type."""
    null: int
    """Nulls."""
    boolean: int
    """Booleans."""
    number: int
    """Numbers."""
    string: int
    """Strings."""
    array: int
    """Arrays."""
    object: int
    """Objects."""


class FoundPath(TypedDict):
    """A path of the metadata and what is there."""
    path: str
    """The path in the metadata."""
    count: int
    """The vectors that have the path, also those with null."""
    types: TypeCounts
    """The vectors by the type of their value."""
    element_types: NotRequired[TypeCounts]
    """The elements of arrays by their type."""
    distinct_count: int
    """Distinct strings, numbers and booleans, also in arrays."""
    is_distinct_exact: bool
    """False for paths with more than 10 000 values in a segment: there are at least
    `distinct_count` values.
    """
    min: NotRequired[float]
    """The least number, if any."""
    max: NotRequired[float]
    """The greatest number, if any."""


class FoundSchema(TypedDict):
    """A page of the paths in the metadata."""
    paths: Sequence[FoundPath]
    """In the order of their characters."""
    has_more: bool
    """Whether there is another page."""
    next_after: NotRequired[str]
    """The `after` of the next page; absent on the last page."""
    count: int
    """The vectors that pass the filter."""
    sequence: int
    """The sequence of the last write that the reply reflects; usable as `min_sequence`."""
    warnings: NotRequired[Sequence[Warning]]
    """Metadata paths in the request that no vector of the collection has, or had before a write; on
    the first page, and absent if there are none.
    """


Join = TypedDict(
    "Join",
    {
        # The collection to search; by default the one in the path.
        "with": NotRequired[CollectionId],
        # The maximum number of matches per vector.
        "top_k": NotRequired[int],
        # Return only matches with at least this score; without `top_k` all of them.
        "score_threshold": NotRequired[float],
        # The named vector of the collection in the path whose values are searched for, instead of
        # the unnamed one. Records without it are excluded.
        "using": NotRequired[VectorName],
        # The named vector that is searched, instead of the unnamed one.
        "with_using": NotRequired[VectorName],
        # Selects the vectors of the collection in the path.
        "filter": NotRequired[JsonObject],
        # Selects the vectors that are searched.
        "with_filter": NotRequired[JsonObject],
        # The number of vectors to join, chosen from those that pass `filter` by hashes of their
        # ids. Matches come from all searched vectors.
        "sample": NotRequired[int],
        # The number of vectors to search, chosen from those that pass `with_filter` in the same
        # way: in a join of a collection with itself, an equal `sample` chooses the same ones. The
        # nearest in a sample are not the nearest of all.
        "with_sample": NotRequired[int],
        # With `sample` or `with_sample`: a different seed gives a different sample. By default `0`.
        "seed": NotRequired[int],
        # Whether to exclude matches with the id of the vector itself. By default true if a
        # collection is joined with itself, false otherwise.
        "exclude_self": NotRequired[bool],
        # Whether to return each pair of vectors once instead of twice. Only in a join of a
        # collection with itself by `score_threshold` alone, since with `top_k` a pair may be among
        # the nearest of only one of its vectors. By default `false`.
        "unordered_pairs": NotRequired[bool],
        # Used instead of the searched collection's metric.
        "metric": NotRequired[Metric],
        # Whether to include the metadata of matches. By default `false`.
        "include_metadata": NotRequired[bool],
    },
)
"""Finds the nearest vectors in one collection for each vector of another."""


class Projection(TypedDict):
    """The principal components of a sample."""
    using: NotRequired[VectorName]
    """The named vector to project, instead of the unnamed one. Records without it are excluded."""
    filter: NotRequired[JsonObject]
    """Only the vectors that pass."""
    sample: NotRequired[int]
    """The number of vectors to choose from those that pass the filter, by hashes of their ids. By
    default `20000`.
    """
    seed: NotRequired[int]
    """By default `0`."""
    dimensions: NotRequired[int]
    """The number of components, which are the coordinates of each vector. By default `2`."""
    neighbors: NotRequired[int]
    """The number of nearest vectors within the sample to return for each vector. By default `0`."""


AliasName: TypeAlias = CollectionId
"""The name of an alias, with the same rules as the id of a collection, but different from all of
them.
"""


class Alias(TypedDict):
    """Another name of a collection."""
    name: AliasName
    collection: CollectionId
    created_at: str
    """When the alias was created."""
    updated_at: str
    """When the alias was last set."""


class AliasList(TypedDict):
    """A page of the aliases."""
    aliases: Sequence[Alias]
    """In the order of their names."""
    next_cursor: NotRequired[str]
    """The token of the next page; absent on the last page."""
    has_more: bool
    """Whether there is another page."""
    total: int
    """The number of aliases."""


class AliasChange(TypedDict):
    """An alias to create, move or delete."""
    name: AliasName
    collection: CollectionId | None
    """The collection to point to; null to delete the alias."""


class AliasesChange(TypedDict):
    """All changes take effect at the same moment, or none. Each name occurs once."""
    aliases: Sequence[AliasChange]
    """The changes."""


class AliasesChanged(TypedDict):
    """The changes took effect."""
    aliases: Sequence[Alias]
    """The aliases that were created or moved."""


class AliasSet(TypedDict):
    """Where to point the alias."""
    collection: CollectionId
    """The collection to point to. An alias stands for the collection behind it."""


class AliasDeleted(TypedDict):
    """The alias is deleted."""
    name: AliasName
    deleted: Literal[True]
    """Always true."""


class ApiKeyRateLimitInput(TypedDict):
    """By default, `burst` is the number per second."""
    per_second: float
    """Reads and writes per second, each. A request counts as the number of its queries, or of the
    vectors that it reads or writes, but at least 1.
    """
    burst: NotRequired[int]
    """How many reads or writes are allowed at once."""


class ApiKeyCreate(TypedDict):
    """A key to create."""
    owner: str
    """A description of who uses the key."""
    scopes: Sequence[str]
    """What the key allows. Every scope but `metrics:read` may be limited to collections by a glob,
    as in `vectors:read:catalog-*` (`*` matches any characters, `?` one).
    """
    expires_at: NotRequired[str | None]
    """When the key expires; absent or null for never. By default `null`."""
    allowed_origins: NotRequired[Sequence[str] | None]
    """Origins of the only web pages that may use the key: the header `Origin` of a request must be
    one of them; null for no restriction. Browsers set the header, and other programs can send
    any. By default `null`.
    """
    rate_limit: NotRequired[ApiKeyRateLimitInput | None]
    """A rate limit instead of that of the service; absent or null for none. By default `null`."""


ApiKeyId: TypeAlias = str
"""The id of a key, which is the part of the key between the two `_`."""


class ApiKeyRateLimit(TypedDict):
    """The rate limit of a key, instead of that of the service. All users of the key share it."""
    per_second: float
    """Reads and writes per second, each. A request counts as the number of its queries, or of the
    vectors that it reads or writes, but at least 1.
    """
    burst: int
    """How many reads or writes are allowed at once."""


class ApiKeyWithSecret(TypedDict):
    """A key with its secret, which no other reply contains."""
    id: ApiKeyId
    owner: str
    """A description of who uses the key."""
    scopes: Sequence[str]
    """What the key allows."""
    allowed_origins: Sequence[str] | None
    """Origins of the only web pages that may use the key: the header `Origin` of a request must be
    one of them; null for no restriction. Browsers set the header, and other programs can send
    any.
    """
    rate_limit: ApiKeyRateLimit | None
    """Null if the limits of the service apply."""
    created_at: str
    """When the key was created."""
    expires_at: str | None
    """Null if the key does not expire."""
    rotated_at: str | None
    """When the key was last rotated; null if it never was."""
    revoked_at: str | None
    """When the key was revoked; null if it is not revoked."""
    key: str
    """Send it as `Authorization: Bearer …`. It is returned only once."""


class ApiKey(TypedDict):
    """A key without its secret, which only the reply that created the key contains."""
    id: ApiKeyId
    owner: str
    """A description of who uses the key."""
    scopes: Sequence[str]
    """What the key allows."""
    allowed_origins: Sequence[str] | None
    """Origins of the only web pages that may use the key: the header `Origin` of a request must be
    one of them; null for no restriction. Browsers set the header, and other programs can send
    any.
    """
    rate_limit: ApiKeyRateLimit | None
    """Null if the limits of the service apply."""
    created_at: str
    """When the key was created."""
    expires_at: str | None
    """Null if the key does not expire."""
    rotated_at: str | None
    """When the key was last rotated; null if it never was."""
    revoked_at: str | None
    """When the key was revoked; null if it is not revoked."""


class ApiKeyList(TypedDict):
    """All keys."""
    keys: Sequence[ApiKey]
    """In the order of their creation."""


class ApiKeyRotate(TypedDict):
    """How to replace the secret."""
    grace_seconds: NotRequired[int]
    """How long the old secret remains valid beside the new one. By default `0`."""


class Grant(TypedDict):
    """A scope and the collections that it applies to."""
    scope: Literal[
        "collections:read",
        "collections:write",
        "vectors:read",
        "vectors:write",
        "metrics:read",
        "admin",
    ]
    """`admin` includes all others."""
    collections: str
    """A glob of collection ids: `*` matches any characters, `?` one."""


class Principal(TypedDict):
    """The caller, as identified by its credential."""
    id: str
    """The id in the audit log: the kind and, for credentials, `:` and their name."""
    kind: Literal["anonymous", "operator", "key", "token", "certificate"]
    """`anonymous` if no credential is required; `operator` on the socket in the data directory."""
    grants: Sequence[Grant]
    """What the caller may do, in no particular order."""
    credentials_required: bool
    """Whether requests need a credential, which is the case once there is one."""
    backups_configured: bool
    """Whether the server has a directory for backups, without which `/backups` answers with an
    error.
    """
    key: ApiKey | None
    """The record of the API key that the caller presents; null for other credentials."""


AuditOutcome: TypeAlias = Literal["succeeded", "refused", "failed"]
"""`refused`: the request was wrong or not permitted (4xx); `failed`: the service could not do it
(5xx).
"""


class AuditEvent(TypedDict):
    """An operation on the service that was carried out or attempted."""
    sequence: int
    """The number of the event in the data directory."""
    time: str
    """When it happened."""
    operation: Literal[
        "collection.create",
        "collection.update",
        "collection.clone",
        "collection.rename",
        "collection.move",
        "collection.delete",
        "alias.set",
        "alias.change",
        "alias.delete",
        "key.create",
        "key.rotate",
        "key.revoke",
        "backup.create",
        "node.drain",
        "node.undrain",
    ]
    """The kind of object and the action."""
    outcome: AuditOutcome
    principal: str
    """The id of the principal, as `GET /principal` returns it."""
    client: str
    """The address of the client; `local` for the socket in the data directory."""
    via: str | None
    """The node of the cluster that received the request, if it forwarded it to this node."""
    target: str | None
    """The id or name of the object, if the request named one."""
    status: int
    """The HTTP status of the reply."""
    request_id: str
    """The `X-Request-Id` of the request."""
    trace_id: str | None
    """The trace that the request belongs to; null without one."""
    unlogged_count: int
    """The number of omitted attempts without a valid credential before this one."""


class AuditList(TypedDict):
    """A page of the audit events."""
    events: Sequence[AuditEvent]
    """Newest first."""
    next_cursor: NotRequired[str]
    """The token of the next page; absent on the last page."""
    has_more: bool
    """Whether there is another page."""
    total: int
    """The number of kept events that match."""
    since: str | None
    """The time of the oldest kept event; null if there is none. The newest 10000 are kept."""


class BackupCreate(TypedDict):
    """A backup to create."""
    name: NotRequired[str]
    """By default generated from the time."""


class Backup(TypedDict):
    """A folder that contains a data directory as of one point in time."""
    name: str
    """The name of its folder in the backup directory."""
    created_at: str
    """The time of the snapshot."""
    byte_length: int
    """The size of all its files."""
    collections: int
    """The number of collections."""


class BackupList(TypedDict):
    """All backups."""
    backups: Sequence[Backup]
    """In the order of their names."""


class NodeDigest(TypedDict):
    """The digest of a collection on a node of the cluster."""
    node: str
    """The name of the node."""
    vector_count: NotRequired[int]
    """The number of vectors at the sequence."""
    digest: NotRequired[str]
    """64 hexadecimal digits."""
    problem: NotRequired[str]
    """Why the digest is missing, or does not cover all committed writes."""


class CollectionDigest(TypedDict):
    """A digest of the content of a collection at a sequence."""
    sequence: int
    """The sequence of the write up to which the collection was read."""
    vector_count: int
    """The number of vectors at that sequence."""
    digest: str
    """64 hexadecimal digits."""
    nodes: NotRequired[Sequence[NodeDigest]]
    """With `all_nodes`: the nodes of the cluster in the order of their names; empty outside a
    cluster.
    """


ProblemCode: TypeAlias = Literal[
    "starting",
    "stopping",
    "disk_full",
    "disk_failed",
    "disk_stalled",
    "nats_disconnected",
    "nats_no_quorum",
    "peer_unreachable",
    "no_leader",
    "deposed",
    "store_failed",
    "log_failed",
    "log_stalled",
    "archive_late",
    "durability",
]
"""`starting`: its sample data is being loaded; `stopping`: it finishes accepted requests and
refuses new ones; `disk_full`: the disk with the data directory has no space for writes;
`disk_failed`: the disk with the data directory refuses writes for another reason;
`disk_stalled`: the disk with the data directory does not answer; `nats_disconnected`: the node
has no connection to the NATS servers; `nats_no_quorum`: fewer than most of the NATS servers that
store a log answer; `peer_unreachable`: the node cannot connect to another one that announces
itself; `no_leader`: no node that this one hears from carries out changes of the catalogue;
`deposed`: another node has taken over from this one, which has not noticed yet; `store_failed`:
the node could not store what the logs contain, and leaves writes to other nodes; `log_failed`:
the node cannot follow a log; `log_stalled`: writes to some collections wait for their logs, or
for a node that takes over; `archive_late`: what the node commits is not archived in the shared
files; `durability`: the NATS servers may lose what they acknowledge, or could not be checked
"""


class ServiceProblem(TypedDict):
    """What is wrong with a service at the moment."""
    code: ProblemCode
    detail: str
    """What was found, and what to do."""
    seconds: float
    """How long it has lasted."""
    blocks_writes: bool
    """Whether writes fail or wait because of it."""


class ClusterNode(TypedDict):
    """A node of the cluster that the replying node has heard from."""
    name: str
    """The configured name of the node."""
    url: str
    """The URL for other nodes; empty until the node answers requests."""
    zone: str
    """The failure domain of the node; empty if none is configured."""
    version: str
    """The version of the program."""
    state: Literal["joining", "serving", "leaving", "absent"]
    """`joining`: requests are not answered yet; `leaving`: it is about to stop; `absent`: the
    replying node has not heard from it recently, although it did not leave.
    """
    collection_count: int
    """The number of collections whose writes the node carries out."""
    held_count: int
    """The number of collections that the node holds."""
    drain: Literal["none", "draining", "drained"]
    """`draining`: it is to be stopped, and other nodes have yet to take over from it; `drained`: it
    can be stopped.
    """
    silent_seconds: float
    """How long it has not been heard from, if it is absent; otherwise 0."""
    problems: Sequence[ServiceProblem]
    """What is wrong with it, as it has announced itself; empty for an absent node."""


class CollectionProblem(TypedDict):
    """What is wrong with the log of a collection."""
    id: str
    """The id of the collection."""
    code: ProblemCode
    detail: str
    """What was found, and what to do."""


class LogServer(TypedDict):
    """A NATS server that stores the log of the catalogue."""
    name: str
    """The name of the NATS server."""
    is_leader: bool
    """Whether it leads the log."""
    silent_seconds: float
    """How long the leader has not heard from it; up to 2 while nothing is written."""
    lag: int
    """Operations of the log that it has not received yet."""


class ClusterDurability(TypedDict):
    """Whether the logs of the cluster preserve acknowledged writes."""
    state: Literal["verified", "unverified", "insufficient"]
    """`verified`: every NATS server syncs each message before it acknowledges it; `unverified`:
    this is unknown; `insufficient`: acknowledged writes can be lost.
    """
    detail: str
    """What was found, and what to do about it."""


class Cluster(TypedDict):
    """The cluster as seen by one of its nodes."""
    node: str | None
    """The name of the node that replies; null outside a cluster."""
    leader: str | None
    """The name of the node that creates, changes and deletes collections, aliases and API keys, as
    far as this node knows; null if there is none.
    """
    is_writable: bool
    """Whether a write through the replying node would succeed now, as `GET /readyz?for=write` says.
    """
    nodes: Sequence[ClusterNode]
    """The nodes in the order of their names; empty outside a cluster."""
    collections: Sequence[CollectionProblem]
    """The first 100 collections with a problem that the replying node as a whole does not have."""
    log_servers: Sequence[LogServer]
    """The NATS servers that store the log of the catalogue; empty if they are unknown."""
    durability: ClusterDurability | None
    """As determined by this node; null outside a cluster."""


class VerifiedFiles(TypedDict):
    """A log, or a group of shared files, of the cluster."""
    kind: Literal["log", "archive", "snapshot", "origin"]
    """`log`: the records of a log; `archive`: its chunks among the shared files; `snapshot`: what
    new nodes start from; `origin`: what a clone had before its first write.
    """
    name: str
    """The name of the log or the log snapshot."""
    count: int
    """Records of a log, chunks of an archive, or files."""
    byte_count: int
    """Their size in bytes."""
    problem: str | None
    """What is damaged; null if nothing is."""


class ClusterFiles(TypedDict):
    """The state of the logs and the shared files of the cluster."""
    files: Sequence[VerifiedFiles]
    """Everything that was read; empty outside a cluster."""


class ServiceInfo(TypedDict):
    """Describes the service. Links are relative to the URL of this document."""
    name: Literal["Sagitta"]
    """The name of the program."""
    version: str
    """The version of the program."""
    api: Literal["v1"]
    """The prefix of versioned paths."""
    console: str | None
    """The web console; null if this server has none."""
    docs: str
    """The API reference."""
    openapi: str
    """The OpenAPI document."""
    ready: str
    """Whether requests will be answered."""


class Limits(TypedDict):
    """The limits of this server."""
    dimension_max: int
    """The maximum dimension of a vector. In elements."""
    named_vectors_max: int
    """The maximum number of named vectors of a collection. In vectors."""
    record_values_max: int
    """The maximum number of dimensions of all named vectors of a collection together. In values."""
    sparse_vectors_max: int
    """The maximum number of sparse vectors of a collection. In vectors."""
    sparse_elements_max: int
    """The maximum number of elements of a sparse vector. In elements."""
    multi_vectors_max: int
    """The maximum number of vectors of a multi-vector of a record. In vectors."""
    multi_values_max: int
    """The maximum number of values of a multi-vector of a record. In values."""
    query_vectors_max: int
    """The maximum number of vectors of a query by a multi-vector. In vectors."""
    body_bytes_max: int
    """The maximum size of a JSON body. In bytes."""
    batch_rows_max: int
    """The maximum number of vectors in one JSON body. In vectors."""
    batch_queries_max: int
    """The maximum number of queries in one JSON body, or of lists in one recall request. In
    queries.
    """
    page_limit_max: int
    """The maximum page size. In records."""
    page_limit_default: int
    """The page size of requests without limit. In records."""
    audit_events_max: int
    """The number of audit events that GET /audit can list; older ones are only in the log. In
    events.
    """
    top_k_max: int
    """The maximum top_k of a query. In matches."""
    top_k_default: int
    """The top_k of queries that do not set it. In matches."""
    examples_max: int
    """The maximum number of examples in a query. In examples."""
    fusion_parts_max: int
    """The maximum number of parts of a fused query. In parts."""
    diversity_candidates_max: int
    """The maximum number of candidates of a diversified query. In vectors."""
    diversity_candidates_default: int
    """The number of candidates of diversified queries that do not set it. In vectors."""
    embed_characters_max: int
    """The maximum length of a text to embed. In characters."""
    filter_nodes_max: int
    """The maximum number of conditions in a filter. In conditions."""
    filter_depth_max: int
    """The maximum nesting depth of $and, $or and $not. In levels."""
    filter_values_max: int
    """The maximum number of values in one $in, $nin, $contains_any, $contains_all or
    $contains_only. In values.
    """
    filter_path_characters_max: int
    """The maximum length of a field name in a filter. In characters."""
    text_fields_max: int
    """The maximum number of metadata paths in the text index of a collection. In paths."""
    text_stop_words_max: int
    """The maximum number of stop words of a collection. In words."""
    text_stop_word_characters_max: int
    """The maximum length of a stop word. In characters."""
    text_query_characters_max: int
    """The maximum length of the text of a query. In characters."""
    text_terms_max: int
    """The maximum number of different words in a query. In words."""
    facets_max: int
    """The maximum number of facets, and of stats, in one request. In paths."""
    facet_values_max: int
    """The maximum number of values of one facet. In values."""
    facet_values_default: int
    """The number of values of facets that do not set limit. In values."""
    histogram_buckets_max: int
    """The maximum number of buckets in one histogram. In buckets."""
    filter_pattern_characters_max: int
    """The maximum length of a pattern of $like or $regex. In characters."""
    filter_pattern_instructions_max: int
    """The maximum size of a compiled $regex, in which repetitions are written out. In instructions.
    """
    filter_patterns_max: int
    """The maximum number of $regex patterns in a filter. In patterns."""
    filter_polygon_points_max: int
    """The maximum number of points of one $geo_polygon, holes included. In points."""
    vector_id_bytes_max: int
    """The maximum length of a vector id. In bytes."""
    filter_cache_bytes_max: int
    """Memory for cached filter results, over all collections; 0 disables the cache. In bytes."""
    sorted_rows_max: int
    """The maximum number of vectors in a sorted list, and in all lists whose order is kept between
    pages. In vectors.
    """
    projection_rows_max: int
    """The maximum sample of a projection. In vectors."""
    projection_rows_default: int
    """The sample of projections that do not set sample. In vectors."""
    projection_dimension_max: int
    """The maximum dimension of vectors to project; a projection takes eight bytes of memory for
    every two elements. In elements.
    """
    projection_coordinates_max: int
    """The maximum dimensions of a projection. In coordinates."""
    projection_neighbors_max: int
    """The maximum number of neighbours of a projected vector. In vectors."""
    metadata_bytes_max: int
    """The maximum size of the metadata of one vector, as sent. In bytes."""
    metadata_depth_max: int
    """The maximum nesting depth of metadata. In levels."""
    metadata_columns_max: int
    """The maximum number of metadata paths that a segment stores as columns. In columns."""
    segment_rows_max: int
    """The number of rows at which a segment is sealed. In rows."""
    segment_value_bytes_max: int
    """The size of the vector values at which a segment is sealed. In bytes."""
    collections_max: int
    """The maximum number of collections. In collections."""
    request_ms_max: int
    """The maximum duration of a request. In milliseconds."""
    retention_ms: int
    """How long a cursor is valid. In milliseconds."""
    idempotency_ms: int
    """How long an idempotency key is remembered. In milliseconds."""
    idempotency_keys_max: int
    """The maximum number of idempotency keys that are remembered. Further keys are refused with 429
    until the oldest expire. In keys.
    """
    queued_requests_max: int
    """The maximum number of requests that wait until their work begins, half of them of one
    principal or, without credentials, of one address. In requests.
    """
    queued_queries_max: int
    """The maximum number of queries that wait for the engine. In queries."""
    queued_writes_max: int
    """The maximum number of writes per collection that wait for a commit. In writes."""
    queued_tasks_max: int
    """The maximum number of tasks (filters, large bodies) that wait for a worker thread. In tasks.
    """
    idempotency_key_characters_max: int
    """The maximum length of an idempotency key. In characters."""
    description_characters_max: int
    """The maximum length of a description. In characters."""
    labels_max: int
    """The maximum number of labels on a collection. In labels."""
    label_characters_max: int
    """The maximum length of the name or value of a label. In characters."""
    read_rate_max: int
    """The read rate limit per principal: queries, or vectors read by id; 0 disables it. In queries
    per second.
    """
    read_burst_max: int
    """The read burst limit per principal. In queries."""
    write_rate_max: int
    """The write rate limit per principal; 0 disables it. In vectors per second."""
    write_burst_max: int
    """The write burst limit per principal. In vectors."""
    body_bytes_in_flight_max: int
    """The total size of request bodies that are being received or processed. In bytes."""
    reply_bytes_in_flight_max: int
    """The total size of replies that clients have not read yet. In bytes."""
    connections_max: int
    """The maximum number of open connections. In connections."""
    connections_per_address_max: int
    """The maximum number of open connections per client address (for IPv6, per /64 network).
    Loopback addresses and trusted proxies are exempt. In connections.
    """
    header_ms_max: int
    """The maximum time for receiving the headers of a request. In milliseconds."""
    arrival_ms_max: int
    """The maximum time for receiving a whole request; streams may take longer. In milliseconds."""
    stalled_ms_max: int
    """How long a client may neither send nor read before its request is aborted. In milliseconds.
    """
    keep_alive_ms: int
    """How long an idle connection is kept open. In milliseconds."""


class Liveness(TypedDict):
    """The process is running."""
    status: Literal["live"]
    """Always `live`."""


class CollectionNotReady(TypedDict):
    """A collection whose requests wait or are refused."""
    id: str
    """The id of the collection."""
    status: Literal["loading", "failed"]
    """`loading`: a request for it waits; `failed`: its data is damaged, and it stays unavailable.
    """
    reason: str
    """Why it is not ready."""


class Readiness(TypedDict):
    """Whether requests are answered."""
    status: Literal["starting", "ready", "stopping", "not_writable"]
    """`starting`: requests are not answered yet; `stopping`: they are no longer answered;
    `not_writable`, only with `for=write`: reads are answered, and writes fail or wait.
    """
    reason: NotRequired[str]
    """Why it is not ready."""
    collections_loading: int
    """The number of collections that have not been loaded since the start. A request for one of
    them loads it next and waits for it.
    """
    collections_not_ready: Sequence[CollectionNotReady]
    """The first 100."""
    problems: Sequence[ServiceProblem]
    """What is wrong at the moment, for clients that may read metrics; empty for others."""


class OpenApiDocument(TypedDict):
    """This document."""


class TrafficInterval(TypedDict):
    """The requests of 30 seconds."""
    time: str
    """When the interval began."""
    seconds: float
    """Its length so far: 30, and less for the interval of the start and for the current one."""
    requests: int
    """The number of requests that ended."""
    errors: int
    """How many of them ended with a status of 400 or more."""
    p50_ms: float | None
    """The median duration of requests in milliseconds, within a fifth; null if there were none."""
    p95_ms: float | None
    """The duration that 95 % of requests did not exceed, in milliseconds, within a fifth; null if
    there were none.
    """
    p99_ms: float | None
    """The duration that 99 % of requests did not exceed, in milliseconds, within a fifth; null if
    there were none.
    """
    rows_written: int
    """The number of vectors that were inserted or updated."""


class CollectionTraffic(TypedDict):
    """The queries and writes of a collection."""
    id: str | None
    """The id of the collection; null for the sum of all that are not listed, because there are many
    or the caller may not see them.
    """
    queries: int
    """The number of queries answered. Each page and each query of a batch counts."""
    rows_written: int
    """The number of vectors that were inserted or updated."""
    p50_ms: float | None
    """The median duration of queries in milliseconds, within a fifth; null if there were none."""
    p95_ms: float | None
    """The duration that 95 % of queries did not exceed, in milliseconds, within a fifth; null if
    there were none.
    """
    p99_ms: float | None
    """The duration that 99 % of queries did not exceed, in milliseconds, within a fifth; null if
    there were none.
    """


class SlowQuery(TypedDict):
    """One of the slowest queries, without vectors, values and metadata paths."""
    time: str
    """When the query ended."""
    collection: str
    """The id of the collection."""
    request_id: str
    """The `X-Request-Id` of the request."""
    milliseconds: float
    """The sum of the members that follow, without the time of the upload."""
    parse_ms: NotRequired[float]
    """Reading the body."""
    embed_ms: NotRequired[float]
    """Turning texts into vectors."""
    plan_ms: NotRequired[float]
    """Planning the query."""
    filter_ms: NotRequired[float]
    """Evaluating the filter."""
    wait_ms: NotRequired[float]
    """Waiting for the engine."""
    search_ms: NotRequired[float]
    """Searching."""
    assemble_ms: NotRequired[float]
    """Reading ids, metadata and values."""
    reply_ms: NotRequired[float]
    """Writing the reply."""
    other_ms: NotRequired[float]
    """While the process was busy with something else."""
    kind: Literal[
        "vector",
        "id",
        "multi_vector",
        "text",
        "sparse",
        "embed",
        "recommend",
        "discover",
        "fusion",
        "continued",
        "batch",
    ]
    """What the query ranks by; `continued` for a page by its cursor, `batch` for several queries.
    """
    query_count: NotRequired[int]
    """The number of queries of a batch."""
    top_k: NotRequired[int]
    """The number of matches requested."""
    limit: NotRequired[int]
    """The size of the page requested."""
    filter: NotRequired[str]
    """The structure of the filter, with `f1`, `f2` … for paths and `?` for values."""
    rows_scanned: NotRequired[int]
    """The number of rows searched."""
    rows_rescored: NotRequired[int]
    """The number of rows whose exact score was computed."""
    code: NotRequired[str]
    """The code of the error, if it failed."""


class Traffic(TypedDict):
    """What a server has done in the last minutes."""
    node: str | None
    """The node of the cluster that answers, for itself; null outside a cluster."""
    intervals: Sequence[TrafficInterval]
    """Oldest first; the last one is current."""
    collections: Sequence[CollectionTraffic]
    """Collections with queries or writes, in the order of their ids."""
    slow_queries: Sequence[SlowQuery]
    """The 20 slowest, slowest first."""
