// Parses bodies of requests: small ones on the event loop, larger ones in the pool, so that the event loop can
// serve other requests meanwhile.

import type { z } from 'zod';
import type { FieldShapes } from '../../common/types.js';
import { INLINE_BYTES_MAX, type Task, type WorkerPool } from '../../platform/pool.js';
import {
  type JsonBody,
  type ParsedBody,
  parseJsonTask,
  type VectorsAt,
} from '../bodies/json-body.js';
import { type ParsedVectors, parseVectorsTask } from '../bodies/json-rows.js';
import { bodyOf, hasIdempotencyKeyHeader } from '../requests/idempotency.js';
import type { RequestContext } from '../requests/request-context.js';
import type { RouteServices } from '../requests/route.js';
import { validateBody } from '../schemas/validate.js';
import type { Properties } from '../wire/property-names.js';

/** The validated body. Not for writes with an idempotency key, for which `runWrite` stores errors of the body too. */
export async function readJsonBody<Schema extends z.ZodType>(
  services: RouteServices,
  request: RequestContext<unknown>,
  schema: Schema,
  vectorsAt: VectorsAt | null = null,
): Promise<Properties<z.output<Schema>>> {
  return validateBody(schema, bodyOf(await parseJsonBody(services, request, vectorsAt)));
}

export function parseJsonBody(
  { pool, limits }: RouteServices,
  request: RequestContext<unknown>,
  vectorsAt: VectorsAt | null = null,
): Promise<ParsedBody<JsonBody>> {
  const { body } = request;
  const isKeyed = hasIdempotencyKeyHeader(request);
  const input = { body, isKeyed, vectorsAt, dimensionMax: limits.dimensionMax };
  return runParseTask(pool, parseJsonTask, input, body.length, { mayBeRefused: true });
}

/** The size of float32 values relative to their base64, which is shorter than all but very short numbers. */
const VALUE_BYTES_SHARE = 3 / 4;

/** `pathId` is the id in the path, if the body is that vector. */
export function parseVectorsBody(
  { pool, limits }: RouteServices,
  request: RequestContext<unknown>,
  { pathId, shapes }: { pathId: string | null; shapes: FieldShapes | null },
): Promise<ParsedBody<ParsedVectors>> {
  const { body } = request;
  const isInline = body.length <= INLINE_BYTES_MAX;
  const input = {
    body,
    room: isInline ? null : request.allocate(Math.ceil(body.length * VALUE_BYTES_SHARE)),
    isKeyed: hasIdempotencyKeyHeader(request),
    pathId,
    shapes,
    limits,
  };
  return runParseTask(pool, parseVectorsTask, input, body.length, { mayBeRefused: true });
}

/** `byteCount` is the size of the bytes to parse. */
export async function runParseTask<Input, Output>(
  pool: WorkerPool,
  task: Task<Input, Output>,
  input: Input,
  byteCount: number,
  options: Parameters<WorkerPool['run']>[2],
): Promise<Output> {
  return byteCount <= INLINE_BYTES_MAX ? task.run(input) : pool.run(task, input, options);
}
