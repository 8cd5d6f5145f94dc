// Serves the API reference at /docs: Swagger UI in the name of the product, from local files, so that it
// works offline. They are read once, on the first request.

import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify';
import type { OpenAPIV3 } from 'openapi-types';
import { assert } from '../../common/errors.js';
import { packageVersion } from '../../common/package-version.js';
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
  '/static/theme/icon.svg',
].map((path) => PREFIX + path);

/** That of the console, which may not be installed. */
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
  <title>Sagitta</title>
  <rect width="32" height="32" rx="7" fill="#2f5bea" />
  <path d="M8 24 22 10M14 9h9v9" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round" stroke-linejoin="round" />
  <circle cx="9" cy="23" r="2.6" fill="#fff" />
</svg>
`;

/** Without Swagger's bar, which has its logo, and with the list of all schemas folded. */
const UI = { layout: 'BaseLayout', defaultModelsExpandDepth: 0 } as const;

const THEME = {
  title: `Sagitta ${packageVersion()}: API reference`,
  favicon: [
    { filename: 'icon.svg', rel: 'icon', type: 'image/svg+xml', sizes: 'any', content: ICON },
  ],
};

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
  await maker.register(swaggerUi, { routePrefix: PREFIX, theme: THEME, uiConfig: UI });
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
