// Parses bodies where it hurts least: small ones at once, large ones in the pool, so that the event
// loop goes on answering others.

import { INLINE_BYTES_MAX, type Task } from '../../platform/pool.js';
import { hasIdempotencyKeyHeader } from '../idempotency.js';
import type { RouteRequest, RouteServices } from '../route.js';
import {
  type BodyInput,
  type JsonBody,
  type ParsedBody,
  parseJsonTask,
  type VectorsAt,
} from './parse-json.js';
import { type ParsedVectors, parseVectorsTask } from './parse-vectors.js';
import type { VectorShape } from './vector-values.js';

export function parseJsonBody(
  services: RouteServices,
  request: RouteRequest<unknown>,
  vectorsAt: VectorsAt | null = null,
): Promise<ParsedBody<JsonBody>> {
  return run(services, parseJsonTask, {
    body: request.body,
    isKeyed: hasIdempotencyKeyHeader(request),
    vectorsAt,
    dimensionMax: services.limits.dimensionMax,
  });
}

/** `pathId`: the id in the path, when the body is that one vector. */
export function parseVectorsBody(
  services: RouteServices,
  request: RouteRequest<unknown>,
  options: { pathId: string | null; shape: VectorShape | null },
): Promise<ParsedBody<ParsedVectors>> {
  const { batchRowsMax, dimensionMax, metadataBytesMax, metadataDepthMax, vectorIdBytesMax } =
    services.limits;
  return run(services, parseVectorsTask, {
    body: request.body,
    isKeyed: hasIdempotencyKeyHeader(request),
    ...options,
    limits: { batchRowsMax, dimensionMax, metadataBytesMax, metadataDepthMax, vectorIdBytesMax },
  });
}

async function run<Input extends BodyInput, Output>(
  services: RouteServices,
  task: Task<Input, Output>,
  input: Input,
): Promise<Output> {
  if (input.body.length <= INLINE_BYTES_MAX) return task.run(input);
  return services.pool.run(task, input, { mayBeRefused: true });
}
