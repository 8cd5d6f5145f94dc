// Writes a stream of vectors batch by batch while it arrives. Both the reply and errors contain the number of
// durable rows.

import { rowField, SagittaError } from '../../common/errors.js';
import { collectGarbageSoon } from '../../common/garbage.js';
import { wireName } from '../../common/wire-names.js';
import type { IdempotencyRequest, WriteMode } from '../../database/api/database-api.js';
import type { RowStream } from '../../database/collection/write-stream.js';
import { commitFile } from '../cluster/added-files.js';
import { embedRows } from '../embedding/embed-rows.js';
import { repliesBy } from '../replies/record-writer.js';
import { asReplay, idempotencyKeyInHeader, idempotencyRequest } from '../requests/idempotency.js';
import type { RequestContext } from '../requests/request-context.js';
import type { RouteServices } from '../requests/route.js';
import { refuseParameters } from '../schemas/validate.js';
import type { BodyStream } from '../transport/body-stream.js';
import { ARROW_STREAM } from '../wire/media-types.js';
import { internalError } from '../wire/problem.js';
import type { StoredReply } from '../wire/reply.js';
import { type BatchOptions, lineBatches, recordBatches } from './ingest-batch.js';
import { writeBatches } from './write-pipeline.js';

export interface IngestQuery {
  readonly mode?: WriteMode | undefined;
  readonly idColumn?: string | undefined;
  readonly vectorColumn?: string | undefined;
  readonly bulk?: boolean | undefined;
}

/** Whether a stream becomes segment files on the node that receives it. Throws `unknown_parameter` where it cannot. */
function isBulk({ query, headers }: RequestContext<IngestQuery>): boolean {
  if (query.bulk !== true) return false;
  const { mode = 'upsert' } = query;
  if (mode === 'upsert' && headers['idempotency-key'] === undefined) return true;
  const found = mode === 'upsert' ? 'an Idempotency-Key' : `the mode ${mode}`;
  const detail = `A bulk stream has the mode upsert and no Idempotency-Key; found ${found}.`;
  refuseParameters([wireName('bulk')], detail);
  return false;
}

/** Freed bytes after which a garbage collection is requested. */
const GARBAGE_BYTES_MIN = 8_000_000;

/** Errors of reading and writing carry the number of durable rows in `committed`. */
export async function ingest(
  services: RouteServices,
  request: RequestContext<IngestQuery>,
  bodyStream: BodyStream,
): Promise<StoredReply> {
  const { mode = 'upsert', idColumn, vectorColumn } = request.query;
  const isArrow = request.contentType === ARROW_STREAM;
  if (!isArrow)
    refuseIfSet(request.query, ['idColumn', 'vectorColumn'], 'This parameter is only for Arrow.');
  const collection = services.database.collection(request.params.id!);
  const idempotency = idempotencyOf(services, request);
  const { forwarder } = services;
  const stream: RowStream =
    isBulk(request) && forwarder !== null
      ? await collection.openBulkStream((incarnation, file) =>
          commitFile({ ...services, forwarder }, incarnation, file, request.signal),
        )
      : await collection.openWriteStream({ mode, idempotency });
  const reserved = { buffered: 0, inFlight: 0 };
  let reservedMax = 0;
  let isOver = false;
  const reserve = (change: Partial<typeof reserved>) => {
    Object.assign(reserved, change);
    const byteCount = isOver ? 0 : reserved.buffered + reserved.inFlight;
    reservedMax = Math.max(reservedMax, byteCount);
    bodyStream.reserve(byteCount);
  };
  const options: BatchOptions = {
    services,
    shapes: collection.vectors,
    isKeyed: idempotency !== undefined,
    isPatch: mode === 'patch',
    idColumn,
    vectorColumn,
    onBuffered: (buffered) => reserve({ buffered }),
    embed: (rows, firstRow) =>
      embedRows(rows, { embedder: services.embedder, collection, signal: request.signal }, (row) =>
        rowField(firstRow + row, 'embed'),
      ),
  };
  const counting = request.telemetry.openStream('in');
  try {
    const batches = (isArrow ? recordBatches : lineBatches)(bodyStream, options);
    await writeBatches(batches, {
      stream,
      threadCount: services.pool.threadCount,
      admit(rowCount) {
        if (services.isStopping()) {
          throw new SagittaError(
            'stopping',
            'The service is stopping. Send the remaining rows to another instance.',
          );
        }
        return request.chargeOrWait(rowCount);
      },
      onBytes: (byteCount) => reserve({ inFlight: byteCount + stream.heldBytes }),
      onCommitted: (timings) => request.telemetry.addCommit(timings),
      onDurable: () => counting.advance(stream.progress.rowCount - stream.resumed.rowCount),
    });
    const replyWith = repliesBy(services.schemas.vectors.written);
    const { reply, isReplay } = await stream.end(({ rowCount, sequence, ...counts }) =>
      replyWith({
        ...counts,
        upsertedCount: rowCount,
        resumedCount: stream.resumed.rowCount,
        sequence: sequence ?? collection.record().sequence,
      }),
    );
    return isReplay ? asReplay(reply) : reply;
  } catch (error) {
    // The rows before the one that is wrong are to be durable.
    await stream.flush();
    throw withCommitted(error, stream);
  } finally {
    // The rest of the body is discarded as it arrives.
    isOver = true;
    reserve({});
    counting.close();
    stream.close();
    // The garbage collector does not account for shared buffers.
    if (reservedMax > GARBAGE_BYTES_MIN) collectGarbageSoon();
  }
}

/** Throws `unknown_parameter` for parameters of other types of bodies. */
export function refuseIfSet(
  query: IngestQuery,
  names: readonly (keyof IngestQuery)[],
  detail: string,
): void {
  const found = names.filter((name) => query[name] !== undefined);
  refuseParameters(found.map(wireName), detail);
}

/** The digest covers how the body is interpreted. The body itself is compared batch by batch. */
function idempotencyOf(
  { limits }: RouteServices,
  request: RequestContext<IngestQuery>,
): IdempotencyRequest | undefined {
  const key = idempotencyKeyInHeader(request, limits);
  if (key === undefined) return undefined;
  return idempotencyRequest(request, key, (params, query) => [
    'stream',
    params,
    query,
    request.contentType,
  ]);
}

/** An error about the key contains no count, since the key may belong to another stream. */
function withCommitted(error: unknown, { progress }: RowStream): unknown {
  const known = error instanceof SagittaError ? error : internalError(error);
  if (known.code.startsWith('idempotency_')) return known;
  const { code, message, issues: items, retryAfterSeconds, scope } = known;
  const committed = { count: progress.rowCount, sequence: progress.sequence };
  return new SagittaError(code, message, {
    issues: items,
    retryAfterSeconds,
    scope,
    committed,
    cause: known.cause ?? known,
  });
}
