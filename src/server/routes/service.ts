// Limits, health, metrics and the OpenAPI document.

import { z } from 'zod';
import { holdsScopeOn, type Principal } from '../../common/access.js';
import type { Database } from '../../database/database.js';
import type { Metrics } from '../../platform/metrics.js';
import { repliesBy } from '../replies/record-writer.js';
import { CACHE_RECORD, jsonReply } from '../replies/reply.js';
import { defineRoute, type Route, type RouteServices } from '../route.js';

/** Readiness probes need not list every failed collection. */
const COLLECTIONS_LISTED_MAX = 100;

/** One page: each page sorts all collections. */
const ALL = { limit: Number.POSITIVE_INFINITY };

export function serviceRoutes(
  services: RouteServices,
  options: { metrics: Metrics; openApi: () => object },
): Route[] {
  const { database, limits } = services;
  const schemas = services.schemas.service;
  const replyLimits = repliesBy(schemas.limits);
  const replyReady = repliesBy(schemas.ready);
  let openApi: Buffer | undefined;
  const operational = {
    method: 'GET',
    tag: 'Service',
    body: null,
    errors: [],
    isAlwaysServed: true,
    isOperational: true,
    access: 'public',
  } as const;

  return [
    defineRoute({
      method: 'GET',
      path: '/limits',
      operationId: 'getLimits',
      tag: 'Service',
      summary: 'Read every bound of the service',
      access: 'anyone',
      body: null,
      reply: schemas.limits,
      errors: [],
      isAlwaysServed: true,
      handle: () => replyLimits({ ...limits }, { 'cache-control': CACHE_RECORD }),
    }),
    defineRoute({
      ...operational,
      path: '/livez',
      operationId: 'getLiveness',
      summary: 'Whether the process answers at all',
      reply: schemas.live,
      handle: () => jsonReply('{"status":"live"}'),
    }),
    defineRoute({
      ...operational,
      path: '/readyz',
      operationId: 'getReadiness',
      summary: 'Whether requests will be answered',
      description:
        'Ready even if some collections have failed: the others are available. Failed collections are listed for clients that may see them.',
      reply: schemas.ready,
      otherReply: { status: 503, description: 'Starting or stopping.' },
      handle({ principal }) {
        const isPrepared = services.preparation?.isDone ?? true;
        const ownState = database.state === 'ready' && !isPrepared ? 'starting' : database.state;
        const state = services.isStopping() ? 'stopping' : ownState;
        const body = {
          status: state,
          collectionsNotReady: collectionsNotReady(database, principal),
        };
        if (state === 'ready') return replyReady(body);
        const reason = reasonOf(state, database);
        return { ...replyReady({ ...body, reason }, { 'retry-after': '1' }), status: 503 };
      },
    }),
    defineRoute({
      ...operational,
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
      ...operational,
      path: '/openapi.json',
      operationId: 'getOpenApi',
      summary: 'This description',
      reply: schemas.openApi,
      // All replies share one buffer, so that slow readers cannot pile up copies.
      handle() {
        openApi ??= Buffer.from(JSON.stringify(options.openApi()));
        return { ...jsonReply('', { 'cache-control': CACHE_RECORD }), body: openApi };
      },
    }),
  ];
}

/** Counts only: a probe has no credential, and must not learn the names of collections. */
function reasonOf(state: 'starting' | 'stopping', database: Database): string {
  if (state === 'starting' && database.state === 'ready') return 'Its sample data is being loaded.';
  if (state === 'stopping') return 'It finishes what it has accepted, and takes nothing new.';
  const { collections } = database.listCollections(ALL);
  const loadedCount = collections.filter(({ status }) => status !== 'loading').length;
  return `Data is being read from disk: ${loadedCount} of ${collections.length} collections so far.`;
}

function collectionsNotReady(database: Database, principal: Principal) {
  const isVisible = (id: string) => holdsScopeOn(principal, 'collections:read', id);
  const found: { id: string; status: 'loading' | 'failed'; reason: string }[] = [];
  for (const record of database.listCollections({ ...ALL, isVisible }).collections) {
    const { id, status, statusReason = '' } = record;
    // What other nodes hold says nothing about this one.
    if (status === 'ready' || status === 'elsewhere') continue;
    found.push({ id, status, reason: statusReason });
    if (found.length === COLLECTIONS_LISTED_MAX) break;
  }
  return found;
}
