// Serves Swagger UI at /docs from local files, so that it works offline. They are read once, on the
// first request.

import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify';
import type { OpenAPIV3 } from 'openapi-types';
import { assert } from '../../common/errors.js';
import type { RouteReply } from '../route.js';
import { createPage, type StaticPage, servePage } from './static-page.js';

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
  let reading: Promise<ReadonlyMap<string, StaticPage>> | undefined;
  const read = () => {
    reading ??= readPages(openApi).catch((error: unknown) => {
      reading = undefined;
      throw error;
    });
    return reading;
  };
  for (const path of PATHS) {
    servePage(app, path, { find: async () => (await read()).get(path)!, send });
  }
}

/** The files as Swagger UI serves them, requested once from an application of its own. */
async function readPages(
  openApi: Readonly<Record<string, unknown>>,
): Promise<ReadonlyMap<string, StaticPage>> {
  const maker = Fastify({ logger: false });
  await maker.register(swagger, {
    mode: 'static',
    specification: { document: openApi as unknown as OpenAPIV3.Document },
  });
  await maker.register(swaggerUi, { routePrefix: PREFIX, theme: { title: 'Sagitta' } });
  const pages = new Map<string, StaticPage>();
  for (const path of PATHS) {
    const { statusCode, headers, rawPayload } = await maker.inject(path);
    assert(statusCode === 200, `Swagger UI has ${path}`);
    const page = createPage(rawPayload, {
      'content-type': String(headers['content-type']),
      'content-security-policy': CONTENT_SECURITY_POLICY,
      // Revalidated on each use, without a body if unchanged.
      'cache-control': 'public, max-age=0',
    });
    pages.set(path, page);
  }
  await maker.close();
  return pages;
}
