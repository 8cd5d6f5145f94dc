// Backups: make one, list those that are there. A backup is made to its end whatever becomes of the
// client that asked for it, and however long it takes.

import { OPERATOR } from '../../common/access.js';
import type { BackupRecord } from '../../database/backup.js';
import { bodyOf } from '../idempotency.js';
import { parseJsonBody } from '../ingest/parse-request.js';
import { validateBody } from '../ingest/validate.js';
import { jsonReply } from '../replies/reply.js';
import { defineRoute, type Route, type RouteServices } from '../route.js';

export function backupRoutes(services: RouteServices): Route[] {
  const { backups } = services;
  const schemas = services.schemas.backups;
  const common = {
    tag: 'Backups',
    path: '/backups',
    access: { scope: 'admin', on: 'service' },
  } as const;

  const create = defineRoute({
    ...common,
    method: 'POST',
    operationId: 'createBackup',
    summary: 'Make a backup of the whole service',
    description:
      'Consistent while writes go on: it holds every write that was acknowledged before the request. The folder is itself a data directory. The reply comes when the backup is on disk, without the deadline of other requests; when the client goes away before, the backup is made all the same, and the list shows it. One is made at a time. It holds what the service holds, digests of API keys among it.',
    body: schemas.create,
    reply: schemas.record,
    audit: 'backup.create',
    mayTakeLong: true,
    errors: [
      'backups_not_configured',
      'backup_exists',
      'collection_unavailable',
      'overloaded',
      'storage_full',
    ],
    async handle(request) {
      const json = bodyOf(await parseJsonBody(services, request));
      if (request.principal === OPERATOR && namesDirectory(json)) {
        const { directory } = validateBody(schemas.createAt, json);
        const made = await backups.createAt(directory);
        return jsonReply(JSON.stringify(toWire(made, { directory })));
      }
      const { name } = validateBody(schemas.create, json);
      const record = await backups.create(name);
      request.telemetry.setAuditTarget(record.name);
      return jsonReply(JSON.stringify(toWireByName(record)));
    },
  });

  const list = defineRoute({
    ...common,
    method: 'GET',
    operationId: 'listBackups',
    summary: 'List the backups that are there, in the order of their names',
    description: 'Those that were made to their end.',
    body: null,
    reply: schemas.list,
    errors: ['backups_not_configured'],
    async handle() {
      const records = await backups.list();
      return jsonReply(JSON.stringify({ backups: records.map(toWireByName) }));
    },
  });

  return [create, list];
}

/** Over the network it is an unknown member like any other. */
function namesDirectory(json: unknown): boolean {
  return typeof json === 'object' && json !== null && 'directory' in json;
}

const toWireByName = (record: BackupRecord) => toWire(record, { name: record.name });

function toWire(
  { createdAt, byteLength, collectionCount }: Omit<BackupRecord, 'name'>,
  place: { readonly name: string } | { readonly directory: string },
) {
  return {
    ...place,
    created_at: createdAt,
    byte_length: byteLength,
    collections: collectionCount,
  };
}
