// Verifies a data directory or a backup and changes nothing in it: catalogue, manifests, segment files, deletions,
// logs, idempotent replies, API keys, and unreferenced files. Continues after every finding. Start here;
// verify-collection.ts checks the data of one collection.

import { METRICS } from '../../common/types.js';
import { isSpec, UNNAMED } from '../../common/vectors.js';
import { decodeEntry } from '../../database/admin/api-key-entry.js';
import { decodeAuditEvent } from '../../database/admin/audit-log.js';
import type { StreamEntry } from '../../database/admin/idempotency.js';
import { keys, logName, segmentBlobName } from '../../database/layout/keys.js';
import {
  type CollectionDefinition,
  decodeJson,
  EMPTY_MANIFEST,
  type Manifest,
} from '../../database/layout/manifest.js';
import { addedFilesIn } from '../../database/layout/store-layout.js';
import { decodeExpiries } from '../../segment/stored-tables.js';
import type { StoreInspection } from '../../storage/store-inspection.js';
import { verifyCollection } from './verify-collection.js';
import { collectionLabel, describeDamage, type Findings } from './verify-report.js';

const CURSOR_SECRET_BYTES = 32;

export async function verifyStore(
  inspection: StoreInspection,
  findings: Findings,
  onProgress: (rowCount: number, share: number) => void = () => {},
): Promise<void> {
  const { counts } = findings;
  const onRead = (byteLength: number) => {
    counts.bytes += byteLength;
    onProgress(counts.rows, Math.min(1, counts.bytes / Math.max(1, inspection.byteLength)));
  };
  const definitions = readDefinitions(inspection, findings);
  const manifests = new Map<string, Manifest>();
  for (const definition of definitions) {
    counts.collections++;
    const manifest = readManifest(inspection, definition, findings);
    if (manifest === undefined) continue;
    manifests.set(definition.incarnation, manifest);
    await verifyCollection({ inspection, findings, definition, manifest, onRead });
  }
  verifySmallEntries(inspection, findings);
  noteLeftovers(inspection, findings, definitions, manifests);
}

function readDefinitions(inspection: StoreInspection, findings: Findings): CollectionDefinition[] {
  const definitions: CollectionDefinition[] = [];
  const idByIncarnation = new Map<string, string>();
  for (const { key, value } of inspection.list(keys.collections)) {
    const id = key[1] ?? '';
    const where = `${collectionLabel({ id })}, catalogue`;
    let definition: CollectionDefinition;
    try {
      definition = decodeJson<CollectionDefinition>(value, 'The entry');
    } catch (error) {
      findings.error(where, describeDamage(error));
      continue;
    }
    const problems = problemsOf(definition, id);
    for (const problem of problems) findings.error(where, problem);
    const { incarnation } = definition;
    const other = idByIncarnation.get(incarnation);
    if (other !== undefined) {
      findings.error(where, `shares its data with ${collectionLabel({ id: other })}`);
    } else if (problems.length === 0) {
      idByIncarnation.set(incarnation, id);
      definitions.push(definition);
    }
  }
  return definitions;
}

function problemsOf(definition: CollectionDefinition, id: string): string[] {
  const { vectors, text, incarnation, createdAtMs, updatedAtMs, labels } = definition;
  const problems: string[] = [];
  if (definition.id !== id) problems.push(`has the id ${JSON.stringify(definition.id)}`);
  if (Object.keys(vectors ?? {}).length === 0 && text === undefined) {
    problems.push('it has no vectors and no text');
  }
  for (const [name, shape] of Object.entries(vectors ?? {})) {
    const where = name === UNNAMED ? 'the unnamed vector' : `vector "${name}"`;
    if (!isSpec(shape)) problems.push(`${where} is ${JSON.stringify(shape)}`);
    else if (shape.kind !== 'sparse' && !METRICS.some((metric) => metric === shape.metric)) {
      problems.push(`metric of ${where} is ${JSON.stringify(shape.metric)}`);
    }
  }
  if (typeof incarnation !== 'string' || !/^[\w-]+$/.test(incarnation)) {
    problems.push('incarnation is missing or invalid');
  }
  if (!Number.isFinite(createdAtMs) || !Number.isFinite(updatedAtMs)) {
    problems.push('time of creation or update is missing');
  }
  if (typeof labels !== 'object' || labels === null) problems.push('labels are missing');
  return problems;
}

/** Undefined if the manifest is damaged; the files of the collection are then not verified. */
function readManifest(
  inspection: StoreInspection,
  definition: CollectionDefinition,
  findings: Findings,
): Manifest | undefined {
  const where = `${collectionLabel(definition)}, manifest`;
  const value = inspection.get(keys.manifest(definition.incarnation));
  if (value === undefined) return EMPTY_MANIFEST;
  let manifest: Manifest;
  try {
    manifest = decodeJson<Manifest>(value, 'The manifest');
  } catch (error) {
    findings.error(where, describeDamage(error));
    return undefined;
  }
  const { checkpointSequence, partialRowCount, horizonSequence, nextSegmentNumber } = manifest;
  const numbers = { checkpointSequence, partialRowCount, horizonSequence, nextSegmentNumber };
  for (const [name, found] of Object.entries(numbers)) {
    if (Number.isSafeInteger(found) && found >= 0) continue;
    findings.error(where, `${name} is ${found}`);
    return undefined;
  }
  if (horizonSequence > checkpointSequence) {
    findings.error(
      where,
      `horizonSequence ${horizonSequence} is after the checkpoint ${checkpointSequence}`,
    );
  }
  if (!Array.isArray(manifest.segments)) {
    findings.error(where, 'segments are missing');
    return undefined;
  }
  const seen = new Set<number>();
  for (const { number } of manifest.segments) {
    if (!(Number.isSafeInteger(number) && number > 0 && number < nextSegmentNumber)) {
      findings.error(
        where,
        `lists segment ${number}, but the next segment number is ${nextSegmentNumber}`,
      );
    } else if (seen.has(number)) {
      findings.error(where, `lists segment ${number} twice`);
    }
    seen.add(number);
  }
  return manifest;
}

function verifySmallEntries(inspection: StoreInspection, findings: Findings): void {
  const { counts } = findings;
  for (const { key, value } of inspection.list(keys.idempotentReplies)) {
    counts.idempotentReplies++;
    if (!isIdempotentReply(value)) {
      findings.error('idempotent replies', `the reply of key ${key[2]} cannot be read`);
    }
  }
  for (const { key } of inspection.list(keys.idempotentExpiries)) {
    if (key.length !== 4 || !/^\d+$/.test(key[2]!)) {
      findings.error('idempotent replies', 'an expiry time is invalid');
    }
  }
  for (const { key, value } of inspection.list(keys.apiKeys)) {
    counts.apiKeys++;
    try {
      decodeEntry(value, key[1] ?? '');
    } catch (error) {
      findings.error('API keys', describeDamage(error));
    }
  }
  for (const { key, value } of inspection.list(keys.auditEvents)) {
    if (decodeAuditEvent(key, value) === null) {
      findings.error('audit events', `event ${Number(key[1])} cannot be read`);
    }
  }
  verifyAliases(inspection, findings);
  verifyExpiries(inspection, findings);
  const secret = inspection.get(keys.cursorSecret);
  if (secret === undefined) {
    findings.note('cursor secret', 'is missing; existing cursors will be rejected');
  } else if (secret.byteLength !== CURSOR_SECRET_BYTES) {
    findings.error(
      'cursor secret',
      `has ${secret.byteLength} bytes, expected ${CURSOR_SECRET_BYTES}`,
    );
  }
}

function verifyAliases(inspection: StoreInspection, findings: Findings): void {
  const incarnations = new Set<string>();
  for (const { value } of inspection.list(keys.collections)) {
    const { incarnation } = parsedOrEmpty(value);
    if (incarnation !== undefined) incarnations.add(incarnation);
  }
  for (const { key, value } of inspection.list(keys.aliases)) {
    const where = `alias ${JSON.stringify(key[1])}`;
    const { name, incarnation } = parsedOrEmpty(value);
    if (name !== key[1]) findings.error(where, 'cannot be read, or has another name');
    else if (incarnation === undefined || !incarnations.has(incarnation)) {
      findings.error(where, 'points to a collection that does not exist');
    }
  }
}

function verifyExpiries(inspection: StoreInspection, findings: Findings): void {
  for (const { key, value } of inspection.list(keys.allExpiries)) {
    try {
      decodeExpiries(value);
    } catch (error) {
      findings.error(`expiries of write ${key[1]}/${Number(key[2])}`, describeDamage(error));
    }
  }
}

/** The members of a JSON entry; damaged collections are reported elsewhere. */
function parsedOrEmpty(value: Uint8Array): {
  readonly name?: string;
  readonly incarnation?: string;
} {
  try {
    return JSON.parse(Buffer.from(value).toString()) as object;
  } catch {
    return {};
  }
}

function isIdempotentReply(value: Uint8Array): boolean {
  try {
    const { payloadDigest, expiresAtMs, reply, stream } = JSON.parse(Buffer.from(value).toString());
    return (
      typeof payloadDigest === 'string' &&
      Number.isFinite(expiresAtMs) &&
      (reply === null ? stream !== undefined : isReply(reply)) &&
      (stream === undefined || isStream(stream))
    );
  } catch {
    return false;
  }
}

/** Whether the reply has a status, headers and a body. */
function isReply(reply: object): boolean {
  const { status, headers, body } = reply as Record<string, unknown>;
  return Number.isInteger(status) && typeof headers === 'object' && typeof body === 'string';
}

function isStream({ incarnation, progress, chain }: StreamEntry): boolean {
  const { batchCount, rowCount, insertedCount, updatedCount } = progress;
  return (
    typeof incarnation === 'string' &&
    typeof chain === 'string' &&
    [batchCount, rowCount, insertedCount, updatedCount].every(Number.isSafeInteger)
  );
}

/** Reports what interrupted operations left behind, which the next start cleans up. */
function noteLeftovers(
  inspection: StoreInspection,
  findings: Findings,
  definitions: readonly CollectionDefinition[],
  manifests: ReadonlyMap<string, Manifest>,
): void {
  const definitionOf = new Map(definitions.map((found) => [found.incarnation, found]));
  const isUnread = (incarnation: string) =>
    definitionOf.has(incarnation) && !manifests.has(incarnation);
  const named = new Set<string>();
  for (const [incarnation, { segments }] of manifests) {
    const added = addedFilesIn(inspection, incarnation).values();
    for (const { number } of [...segments, ...added]) {
      named.add(segmentBlobName(incarnation, number));
    }
  }
  for (const name of inspection.blobs.keys()) {
    if (named.has(name) || isUnread(name.slice(0, name.indexOf('/')))) continue;
    findings.note(`segments/${name}`, 'no manifest lists this file');
  }
  for (const { key } of inspection.list(keys.manifests)) {
    if (!definitionOf.has(key[1]!)) findings.note(`manifest ${key[1]}`, 'belongs to no collection');
  }
  for (const { key } of inspection.list(keys.allDeletions)) {
    const manifest = manifests.get(key[1]!);
    const isNamed = manifest?.segments.some(({ number }) => String(number) === key[2]) ?? false;
    if (isNamed || isUnread(key[1]!)) continue;
    findings.note(`deletions of segment ${key[1]}/${key[2]}`, 'the segment does not exist');
  }
  const logs = new Set(definitions.map(({ incarnation }) => logName(incarnation)));
  for (const [log, { recordCount }] of inspection.logs) {
    if (logs.has(log) || recordCount === 0) continue;
    findings.note(`log ${log}`, `${recordCount} records belong to no collection`);
  }
}
