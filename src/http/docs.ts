// The page at /docs: Swagger UI from files of its own, so that it works without the internet.

import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import type { OpenAPIV3 } from 'openapi-types';

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

export async function serveDocs(
  app: FastifyInstance,
  openApi: Readonly<Record<string, unknown>>,
): Promise<void> {
  await app.register(swagger, {
    mode: 'static',
    specification: { document: openApi as unknown as OpenAPIV3.Document },
  });
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: CONTENT_SECURITY_POLICY,
    theme: { title: 'Sagitta' },
  });
}
