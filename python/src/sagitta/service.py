"""Methods for the whole service: collections, aliases, keys, backups, the audit log, probes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from typing_extensions import Unpack

from sagitta import wire
from sagitta.core import Core, members, pages, parse_json, segment
from sagitta.flow import Awaitable, Blocking, Flow, ItemFlow, Request, call, items


class Group:
    """Methods that share a core."""

    def __init__(self, core: Core, runner: Any) -> None:
        self._core = core
        self._runner = runner


class CollectionsFlows(Group):
    """Collections. Raises `collection_not_found`, even if only access is missing."""

    @call
    def create(
        self,
        *,
        if_not_exists: bool = False,
        **collection: Unpack[wire.CollectionCreate],
    ) -> Flow[wire.Collection]:
        """Creates a collection, such as `create(id="articles", dimension=384, metric="dot")`.

        With `if_not_exists`, returns an existing collection with the same settings; one with other
        settings is an error. Raises `collection_exists`.
        """
        body = dict(collection)
        key = body.pop("idempotency_key", None)
        query = {"if_not_exists": True} if if_not_exists else {}
        return self._core.write("/collections", body, key, query)  # type: ignore[arg-type]

    @call
    def get(self, id: str) -> Flow[wire.Collection]:
        """The record of a collection: its settings, counts, engine and memory."""
        return self._core.get(f"/collections/{segment(id)}")

    @call
    def list(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> Flow[wire.CollectionList]:
        """One page, ordered by id."""
        return self._list({"limit": limit, "cursor": cursor})

    @items
    def pages(self, *, limit: int | None = None) -> ItemFlow[wire.CollectionList]:
        """All pages."""
        return pages({"limit": limit}, self._list)

    @items
    def all(self, *, limit: int | None = None) -> ItemFlow[wire.Collection]:
        """One collection at a time; `limit` is the page size."""
        return members(pages({"limit": limit}, self._list), "collections")

    @call
    def digest(
        self, id: str, *, sequence: int | None = None, all_nodes: bool | None = None
    ) -> Flow[wire.CollectionDigest]:
        """A digest of the content of a collection at a sequence, by default the last one.

        `all_nodes` adds the digests of the other nodes of a cluster. Reads all rows."""
        query = {"sequence": sequence, "all_nodes": all_nodes}
        path = f"/collections/{segment(id)}/digest"
        request = Request("GET", path, is_idempotent=True, query=query, is_unlimited=True)
        return self._core.json(request)

    @call
    def segments(
        self, id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Flow[wire.SegmentList]:
        """One page of the segments of a collection, ordered by number."""
        return self._segments(id, {"limit": limit, "cursor": cursor})

    @items
    def all_segments(self, id: str, *, limit: int | None = None) -> ItemFlow[wire.Segment]:
        """One segment at a time; `limit` is the page size."""
        of_pages = pages({"limit": limit}, lambda page: self._segments(id, page))
        return members(of_pages, "segments")

    @call
    def update(self, id: str, **change: Unpack[wire.CollectionUpdate]) -> Flow[wire.Collection]:
        """Changes those of description, labels, ttl_seconds, schema, embedding and
        replication_factor that are given. Adds `vectors` and `sparse_vectors`; None drops them.

        Not retried after a lost reply if it drops vectors, because a retry would not find them.
        """
        path = f"/collections/{segment(id)}"
        settings: list[object] = [*change.get("vectors", {}).values()]
        settings += change.get("sparse_vectors", {}).values()
        is_idempotent = None not in settings
        return self._core.json(Request("PATCH", path, is_idempotent=is_idempotent, body=change))

    @call
    def clone(
        self, collection: str, **settings: Unpack[wire.CollectionClone]
    ) -> Flow[wire.Collection]:
        """Copies a snapshot of a collection to a new one, whose id is `id` in `settings`.

        Waits as long as it takes, unless the client has a deadline.
        """
        body: dict[str, Any] = {**settings}
        key = body.pop("idempotency_key", None)
        path = f"/collections/{segment(collection)}/clone"
        return self._core.write(path, body, key, is_unlimited=True)

    @call
    def rename(
        self, id: str, new_id: str, *, idempotency_key: str | None = None
    ) -> Flow[wire.Collection]:
        """Gives a collection another id."""
        path = f"/collections/{segment(id)}/rename"
        return self._core.write(path, {"id": new_id}, idempotency_key)

    @call
    def move(self, id: str, *, from_node: str, to_node: str) -> Flow[wire.Collection]:
        """Moves a collection from one node of a cluster to another.

        The record contains `move` until the move is done. Not retried after a lost reply: `get`
        shows the outcome. Raises `node_not_found`.
        """
        path = f"/collections/{segment(id)}/move"
        body = {"from": from_node, "to": to_node}
        return self._core.json(Request("POST", path, is_idempotent=False, body=body))

    @call
    def delete(self, id: str) -> Flow[wire.CollectionDeleted]:
        """Deletes a collection and its data. Not retried after a lost reply: `get` shows the
        outcome.
        """
        path = f"/collections/{segment(id)}"
        return self._core.json(Request("DELETE", path, is_idempotent=False))

    def _list(self, page: Mapping[str, Any]) -> Flow[Any]:
        return self._core.get("/collections", page)

    def _segments(self, id: str, page: Mapping[str, Any]) -> Flow[Any]:
        return self._core.get(f"/collections/{segment(id)}/segments", page)


class AliasesFlows(Group):
    """Additional names of collections. Raises `alias_not_found`."""

    @call
    def set(self, name: str, collection: str) -> Flow[wire.Alias]:
        """Points an alias to a collection. Creates the alias if it does not exist."""
        path = f"/aliases/{segment(name)}"
        body = {"collection": collection}
        return self._core.json(Request("PUT", path, is_idempotent=True, body=body))

    @call
    def change(self, targets: Mapping[str, str | None]) -> Flow[wire.AliasesChanged]:
        """Sets several aliases atomically. Deletes those whose collection is None."""
        changes = [{"name": name, "collection": target} for name, target in targets.items()]
        return self._core.read("/aliases", {"aliases": changes})

    @call
    def get(self, name: str) -> Flow[wire.Alias]:
        return self._core.get(f"/aliases/{segment(name)}")

    @call
    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Flow[wire.AliasList]:
        """One page, ordered by name."""
        return self._list({"limit": limit, "cursor": cursor})

    @items
    def all(self, *, limit: int | None = None) -> ItemFlow[wire.Alias]:
        """One alias at a time; `limit` is the page size."""
        return members(pages({"limit": limit}, self._list), "aliases")

    @call
    def delete(self, name: str) -> Flow[wire.AliasDeleted]:
        """Deletes an alias but not its collection. Not retried after a lost reply."""
        return self._core.json(Request("DELETE", f"/aliases/{segment(name)}", is_idempotent=False))

    def _list(self, page: Mapping[str, Any]) -> Flow[Any]:
        return self._core.get("/aliases", page)


class KeysFlows(Group):
    """API keys. Every method requires the scope `admin`. Raises `key_not_found`."""

    @call
    def create(self, **key: Unpack[wire.ApiKeyCreate]) -> Flow[wire.ApiKeyWithSecret]:
        """Creates a key. Only this reply contains its secret.

        Not retried: if the reply is lost, a key exists whose secret nobody knows. Revoke it then.
        """
        return self._core.json(Request("POST", "/keys", is_idempotent=False, body=key))

    @call
    def list(self) -> Flow[wire.ApiKeyList]:
        """All keys, including expired and revoked ones."""
        return self._core.get("/keys")

    @call
    def get(self, id: str) -> Flow[wire.ApiKey]:
        return self._core.get(f"/keys/{segment(id)}")

    @call
    def rotate(self, id: str, *, grace_seconds: int = 0) -> Flow[wire.ApiKeyWithSecret]:
        """Replaces the secret. The old one stays valid for `grace_seconds`. Not retried."""
        body = {"grace_seconds": grace_seconds}
        path = f"/keys/{segment(id)}/rotate"
        return self._core.json(Request("POST", path, is_idempotent=False, body=body))

    @call
    def revoke(self, id: str) -> Flow[wire.ApiKey]:
        return self._core.json(Request("DELETE", f"/keys/{segment(id)}", is_idempotent=True))


class BackupsFlows(Group):
    """Backups. Every method requires the scope `admin` and a server with a backup directory."""

    @call
    def create(self, *, name: str | None = None) -> Flow[wire.Backup]:
        """Creates a backup. Returns when it is on disk, however long it takes.

        Not retried: after a `network_error`, `list` shows whether the backup was created.
        """
        body = {} if name is None else {"name": name}
        request = Request("POST", "/backups", is_idempotent=False, body=body, is_unlimited=True)
        return self._core.json(request)

    @call
    def list(self) -> Flow[wire.BackupList]:
        return self._core.get("/backups")


class AuditOptions(TypedDict, total=False):
    principal: str | None
    operation: str | None
    outcome: str | None
    target: str | None
    since: str | None
    until: str | None
    limit: int | None


class AuditListOptions(AuditOptions, total=False):
    cursor: str | None


class AuditFlows(Group):
    """Audit events, newest first. Every method requires the scope `admin`.

    `operation` is an operation such as `collection.delete`, or `collection` for all operations on
    collections. `since` (inclusive) and `until` (exclusive) are RFC 3339 times.
    """

    @call
    def list(self, **page: Unpack[AuditListOptions]) -> Flow[wire.AuditList]:
        """One page. A cursor is sent alone."""
        return self._list(page)

    @items
    def all(self, **first: Unpack[AuditOptions]) -> ItemFlow[wire.AuditEvent]:
        """One event at a time; `limit` is the page size."""
        return members(pages(first, self._list), "events")

    def _list(self, page: Mapping[str, Any]) -> Flow[Any]:
        return self._core.get("/audit", page)


def drain_path(node: str) -> str:
    return f"/cluster/nodes/{segment(node)}/drain"


class ServiceFlows(Group):
    """Methods for operators."""

    @call
    def info(self) -> Flow[wire.ServiceInfo]:
        """Describes the service, with links relative to its address."""
        return self._probe("/")

    @call
    def live(self) -> Flow[wire.Liveness]:
        """Returns if the process responds; raises otherwise."""
        return self._probe("/livez")

    @call
    def ready(self, *, for_write: bool = False) -> Flow[wire.Readiness]:
        """The readiness of the server, with `for_write` also for writes.

        A server that is not ready is not an error here.
        """
        return self._probe("/readyz?for=write" if for_write else "/readyz", also_status=503)

    @call
    def cluster(self) -> Flow[wire.Cluster]:
        """The cluster as one of its nodes sees it. May require the scope `metrics:read`."""
        return self._core.get("/cluster", {})

    @call
    def traffic(self, *, minutes: int | None = None) -> Flow[wire.Traffic]:
        """The requests, queries and slowest queries of the last minutes, by default of an hour.

        The node that is asked answers for itself. May require the scope `metrics:read`.
        """
        return self._core.get("/traffic", {"minutes": minutes})

    @call
    def verify_files(self) -> Flow[wire.ClusterFiles]:
        """Reads the logs and shared files of the cluster and reports what is wrong."""
        return self._core.json(
            Request("GET", "/cluster/files", is_idempotent=True, is_unlimited=True)
        )

    @call
    def drain(self, node: str) -> Flow[wire.ClusterNode]:
        """Prepares a node of the cluster for being stopped: other nodes take over its work.

        `cluster` shows when it is drained. Requires the scope `admin`. Raises `node_not_found`.
        """
        return self._core.json(Request("PUT", drain_path(node), is_idempotent=True))

    @call
    def undrain(self, node: str) -> Flow[wire.ClusterNode]:
        """Reverses `drain`. Requires the scope `admin`. Raises `node_not_found`."""
        return self._core.json(Request("DELETE", drain_path(node), is_idempotent=True))

    @call
    def metrics(self) -> Flow[str]:
        """Metrics in the Prometheus text format. May require the scope `metrics:read`."""
        request = Request(
            "GET",
            "/metrics",
            is_idempotent=True,
            is_operational=True,
            headers={"accept": "text/plain, */*"},
        )
        reply = yield from self._core.send(request)
        return reply.content.decode()

    @call
    def openapi(self) -> Flow[Mapping[str, Any]]:
        """The OpenAPI document."""
        return self._probe("/openapi.json")

    def _probe(self, path: str, also_status: int | None = None) -> Flow[Any]:
        request = Request(
            "GET", path, is_idempotent=True, is_operational=True, also_status=also_status
        )
        reply = yield from self._core.send(request)
        return parse_json(reply)


class Collections(CollectionsFlows, Blocking):
    pass


class AsyncCollections(CollectionsFlows, Awaitable):
    pass


class Aliases(AliasesFlows, Blocking):
    pass


class AsyncAliases(AliasesFlows, Awaitable):
    pass


class Keys(KeysFlows, Blocking):
    pass


class AsyncKeys(KeysFlows, Awaitable):
    pass


class Backups(BackupsFlows, Blocking):
    pass


class AsyncBackups(BackupsFlows, Awaitable):
    pass


class Audit(AuditFlows, Blocking):
    pass


class AsyncAudit(AuditFlows, Awaitable):
    pass


class Service(ServiceFlows, Blocking):
    pass


class AsyncService(ServiceFlows, Awaitable):
    pass
