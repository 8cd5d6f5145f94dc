// Limits, health, metrics and the OpenAPI document.

import { z } from 'zod';
import { holdsScopeEverywhere, holdsScopeOn, type Principal } from '../../common/access.js';
import { PROBLEM_MEANINGS, type ProblemCode } from '../../common/problems.js';
import type { Metrics } from '../../platform/metrics.js';
import { repliesBy } from '../replies/record-writer.js';
import { defineRoute, type Route, type RouteServices } from '../requests/route.js';
import { CACHE_RECORD, jsonReply } from '../wire/reply.js';

/** Readiness probes do not list every failed collection. */
const COLLECTIONS_LISTED_MAX = 100;

const READY_QUERY = z.object({
  for: z.enum(['write']).optional().meta({
    description:
      '`write`: the reply is 503 also while a write through this process would fail or wait.',
  }),
});

/** Whether a problem keeps the service from answering any request. */
function isUnready(code: ProblemCode): boolean {
  return code === 'starting' || code === 'stopping';
}

/** What the routes for probes and monitoring have in common. */
const OPERATIONAL = {
  method: 'GET',
  tag: 'Service',
  body: null,
  errors: [],
  isAlwaysServed: true,
  isOperational: true,
  access: 'public',
} as const;

export function serviceRoutes(
  services: RouteServices,
  options: { metrics: Metrics; describe: () => object },
): Route[] {
  const { limits } = services;
  const schemas = services.schemas.service;
  const replyLimits = repliesBy(schemas.limits);
  let openApi: Buffer | undefined;
  return [
    defineRoute({
      method: 'GET',
      path: '/limits',
      operationId: 'getLimits',
      tag: 'Service',
      summary: 'Read the limits of the service',
      access: 'anyone',
      body: null,
      reply: schemas.limits,
      errors: [],
      isAlwaysServed: true,
      handle: () => replyLimits({ ...limits }, { 'cache-control': CACHE_RECORD }),
    }),
    defineRoute({
      ...OPERATIONAL,
      path: '/livez',
      operationId: 'getLiveness',
      summary: 'Check that the process responds',
      reply: schemas.live,
      handle: () => jsonReply('{"status":"live"}'),
    }),
    readyRoute(services),
    defineRoute({
      ...OPERATIONAL,
      path: '/metrics',
      operationId: 'getMetrics',
      summary: 'Metrics for Prometheus',
      access: { scope: 'metrics:read', on: 'service' },
      reply: z.string().meta({ examples: ['sagitta_vectors 12000\n'] }),
      replyTypes: [options.metrics.contentType],
      async handle() {
        const text = await options.metrics.render();
        return jsonReply(text, { 'content-type': options.metrics.contentType });
      },
    }),
    defineRoute({
      ...OPERATIONAL,
      path: '/openapi.json',
      operationId: 'getOpenApi',
      summary: 'Read the OpenAPI document',
      reply: schemas.openApi,
      // Made at the first request, as it takes longer than the rest of the start. All replies share one buffer, so that
      // slow readers cannot pile up copies.
      handle() {
        openApi ??= Buffer.from(JSON.stringify(options.describe()));
        return { ...jsonReply('', { 'cache-control': CACHE_RECORD }), body: openApi };
      },
    }),
  ];
}

function readyRoute(services: RouteServices): Route {
  const { database, schemas } = services;
  const replyReady = repliesBy(schemas.service.ready);
  const readiness = (principal: Principal, isForWrite: boolean) => {
    const problems = services.problems();
    const unready = problems.find(
      ({ code, blocksWrites }) => isUnready(code) || (isForWrite && blocksWrites),
    );
    const maySee = holdsScopeEverywhere(principal, 'metrics:read');
    const common = {
      collectionsLoading: database.loadingCount,
      collectionsNotReady: database.unservedCollections({
        isVisible: (id) => holdsScopeOn(principal, 'collections:read', id),
        countMax: COLLECTIONS_LISTED_MAX,
      }),
      problems: maySee ? problems : [],
    };
    if (unready === undefined) return { ...common, status: 'ready' };
    const { code, detail } = unready;
    if (isUnready(code)) return { ...common, status: code, reason: detail };
    const reason = maySee ? detail : `Writes fail or wait: ${PROBLEM_MEANINGS[code]}.`;
    return { ...common, status: 'not_writable', reason };
  };

  return defineRoute({
    ...OPERATIONAL,
    path: '/readyz',
    operationId: 'getReadiness',
    summary: 'Check that requests will be answered',
    description:
      'The service is ready also while collections are being loaded after a start, and if some have failed: the others are available. A request for a collection that is not loaded yet loads it next and waits for it. Collections that are not ready are listed for clients that may see them. Load balancers of writes ask with `for=write`.',
    query: READY_QUERY,
    reply: schemas.service.ready,
    otherReply: { status: 503, description: 'Starting, stopping, or not writable.' },
    handle({ principal, query }) {
      const body = readiness(principal, query.for === 'write');
      if (body.status === 'ready') return replyReady(body);
      return { ...replyReady(body, { 'retry-after': '1' }), status: 503 };
    },
  });
}
