// The page at /docs: Swagger UI from files of its own, so that it works without the internet. Each
// file is read once, when the page is first asked for, and all readers share its bytes: one who takes
// them slowly holds neither a descriptor nor memory.

import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import Fastify, { type FastifyInstance } from 'fastify';
import type { OpenAPIV3 } from 'openapi-types';
import { assert } from '../common/errors.js';
import { applyIfNoneMatch, etagOf } from './conditional.js';
import { type Sending, send } from './request-pipeline.js';
import type { RouteReply } from './route.js';

/** Only what the page itself brings; Swagger UI styles its elements inline. */
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

/** What the page consists of, and the description in the forms that it links to. */
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
  sending: Sending,
): void {
  let reading: Promise<ReadonlyMap<string, RouteReply>> | undefined;
  for (const path of PATHS) {
    app.get(path, async (request, reply) => {
      reading ??= readPages(openApi).catch((error: unknown) => {
        reading = undefined;
        throw error;
      });
      const page = (await reading).get(path)!;
      return send(reply, applyIfNoneMatch(page, request.headers['if-none-match']), sending);
    });
  }
}

/** What Swagger UI makes of the description, asked of an application that nobody else asks. */
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
        // Asked for each time, and spared the body when it is the same.
        'cache-control': 'public, max-age=0',
        etag: etagOf(rawPayload),
      },
      body: rawPayload,
    });
  }
  await maker.close();
  return pages;
}
