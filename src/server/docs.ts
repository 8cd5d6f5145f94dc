// Serves Swagger UI at /docs from local files, so that it works offline. Each file is read once, on
// the first request, and all requests share its bytes: a slow reader holds neither a file descriptor
// nor memory of its own.

import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify';
import type { OpenAPIV3 } from 'openapi-types';
import { assert } from '../common/errors.js';
import { applyIfNoneMatch, etagOf } from './conditional.js';

import type { RouteReply } from './route.js';

/** Allows the page's own files only, and inline styles, which Swagger UI uses. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const PREFIX = '/docs';

/** The files of the page, and the OpenAPI document in the formats that it links to. */
const PATHS = [
  '',
  '/',
  '/json',
  '/yaml',
  '/static/index.css',
  '/static/swagger-ui.css',
  '/static/swagger-ui-bundle.js',
  '/static/swagger-ui-standalone-preset.js',
  '/static/swagger-initializer.js',
  '/static/favicon-16x16.png',
  '/static/favicon-32x32.png',
].map((path) => PREFIX + path);

export function serveDocs(
  app: FastifyInstance,
  openApi: Readonly<Record<string, unknown>>,
  send: (reply: FastifyReply, found: RouteReply) => FastifyReply,
): void {
  let reading: Promise<ReadonlyMap<string, RouteReply>> | undefined;
  for (const path of PATHS) {
    app.get(path, async (request, reply) => {
      reading ??= readPages(openApi).catch((error: unknown) => {
        reading = undefined;
        throw error;
      });
      const page = (await reading).get(path)!;
      return send(reply, applyIfNoneMatch(page, request.headers['if-none-match']));
    });
  }
}

/** The files as Swagger UI serves them, requested once from an application of its own. */
async function readPages(
  openApi: Readonly<Record<string, unknown>>,
): Promise<ReadonlyMap<string, RouteReply>> {
  const maker = Fastify({ logger: false });
  await maker.register(swagger, {
    mode: 'static',
    specification: { document: openApi as unknown as OpenAPIV3.Document },
  });
  await maker.register(swaggerUi, { routePrefix: PREFIX, theme: { title: 'Sagitta' } });
  const pages = new Map<string, RouteReply>();
  for (const path of PATHS) {
    const { statusCode, headers, rawPayload } = await maker.inject(path);
    assert(statusCode === 200, `Swagger UI has ${path}`);
    pages.set(path, {
      status: 200,
      headers: {
        'content-type': String(headers['content-type']),
        'content-security-policy': CONTENT_SECURITY_POLICY,
        // Revalidated on each use, without a body if unchanged.
        'cache-control': 'public, max-age=0',
        etag: etagOf(rawPayload),
      },
      body: rawPayload,
    });
  }
  await maker.close();
  return pages;
}
