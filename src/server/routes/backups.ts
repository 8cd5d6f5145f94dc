// Backups: create, list. A backup is completed however long it takes, even if the client disconnects.

import { OPERATOR } from '../../common/access.js';
import { isJsonObject } from '../../common/metadata-path.js';
import type { BackupRecord } from '../../database/admin/backup.js';
import { parseJsonBody } from '../ingest/parse-request.js';
import { repliesBy } from '../replies/record-writer.js';
import { bodyOf } from '../requests/idempotency.js';
import { defineRoute, type Route, type RouteServices } from '../requests/route.js';
import { validateBody } from '../schemas/validate.js';
import { defineJsonRoute } from './json-route.js';

export function backupRoutes(services: RouteServices): Route[] {
  const { backups } = services;
  const schemas = services.schemas.backups;
  const replyWith = repliesBy(schemas.record);
  const replyAt = repliesBy(schemas.recordAt);
  const common = {
    tag: 'Backups',
    path: '/backups',
    access: { scope: 'admin', on: 'service' },
  } as const;

  const create = defineRoute({
    ...common,
    method: 'POST',
    operationId: 'createBackup',
    summary: 'Create a backup of the whole service',
    description:
      'Creates a consistent backup during writes: it contains every write that was acknowledged before the request. The folder is itself a data directory. The reply is sent when the backup is on disk; the request deadline does not apply. If the client disconnects, the backup is still completed and appears in the list. One backup is made at a time. It contains everything that the server stores, including digests of API keys.',
    body: schemas.create,
    reply: schemas.record,
    audit: 'backup.create',
    runsOnAnyNode: true,
    mayTakeLong: true,
    errors: [
      'backups_not_configured',
      'backup_exists',
      'collection_unavailable',
      'overloaded',
      'storage_full',
      'backup_failed',
    ],
    async handle(request) {
      const json = bodyOf(await parseJsonBody(services, request));
      if (request.principal === OPERATOR && namesDirectory(json)) {
        const { directory } = validateBody(schemas.createAt, json);
        return replyAt({ directory, ...toReply(await backups.createAt(directory)) });
      }
      const { name } = validateBody(schemas.create, json);
      const record = await backups.create(name);
      request.telemetry.setAuditTarget(record.name);
      return replyWith(toReply(record));
    },
  });

  const list = defineJsonRoute(services, {
    ...common,
    method: 'GET',
    operationId: 'listBackups',
    summary: 'List the backups in the order of their names',
    description: 'Lists completed backups.',
    body: null,
    reply: schemas.list,
    errors: ['backups_not_configured'],
    handle: async () => ({ backups: (await backups.list()).map(toReply) }),
  });

  return [create, list];
}

/** Only the control socket accepts `directory`; over the network it is an unknown member. */
function namesDirectory(json: unknown): boolean {
  return isJsonObject(json) && 'directory' in json;
}

function toReply<Made extends Omit<BackupRecord, 'name'>>(made: Made) {
  return { ...made, collections: made.collectionCount };
}
