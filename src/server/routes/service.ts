// Limits, health, metrics and the OpenAPI document.

import { z } from 'zod';
import { holdsScopeOn } from '../../common/access.js';
import type { Metrics } from '../../platform/metrics.js';
import { repliesBy } from '../replies/record-writer.js';
import { defineRoute, type Route, type RouteServices } from '../requests/route.js';
import { CACHE_RECORD, jsonReply } from '../wire/reply.js';

/** Readiness probes do not list every failed collection. */
const COLLECTIONS_LISTED_MAX = 100;

const REASONS = {
  starting: 'Its sample data is being loaded.',
  stopping: 'It finishes accepted requests and refuses new ones.',
} as const;

export function serviceRoutes(
  services: RouteServices,
  options: { metrics: Metrics; describe: () => object },
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
      summary: 'Read the limits of the service',
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
      summary: 'Check that the process responds',
      reply: schemas.live,
      handle: () => jsonReply('{"status":"live"}'),
    }),
    defineRoute({
      ...operational,
      path: '/readyz',
      operationId: 'getReadiness',
      summary: 'Check that requests will be answered',
      description:
        'The service is ready also while collections are being loaded after a start, and if some have failed: the others are available. A request for a collection that is not loaded yet loads it next and waits for it. Collections that are not ready are listed for clients that may see them.',
      reply: schemas.ready,
      otherReply: { status: 503, description: 'Starting or stopping.' },
      handle({ principal }) {
        const isPrepared = services.preparation?.isDone ?? true;
        const isStopping = services.isStopping() || database.isStopping;
        const state = isStopping ? 'stopping' : isPrepared ? 'ready' : 'starting';
        const body = {
          status: state,
          collectionsLoading: database.loadingCount,
          collectionsNotReady: database.unservedCollections({
            isVisible: (id) => holdsScopeOn(principal, 'collections:read', id),
            countMax: COLLECTIONS_LISTED_MAX,
          }),
        };
        if (state === 'ready') return replyReady(body);
        const reason = REASONS[state];
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
