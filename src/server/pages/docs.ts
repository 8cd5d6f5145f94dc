// Serves the API reference at /docs: Swagger UI in the name of the product, from local files, so that it
// works offline. They are made once, on the first request, in a thread of their own: writing the description as YAML
// alone would block the event loop for a quarter of a second.

import { Worker } from 'node:worker_threads';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { programFile } from '../../common/package-files.js';
import type { RouteReply } from '../wire/reply.js';
import { DOCS_PATHS, type DocsFile } from './docs-files.js';
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

export function serveDocs(
  app: FastifyInstance,
  openApi: () => Readonly<Record<string, unknown>>,
  send: (reply: FastifyReply, found: RouteReply) => FastifyReply,
): void {
  let reading: Promise<ReadonlyMap<string, StaticPage>> | undefined;
  const read = () => {
    reading ??= readPages(openApi()).catch((error: unknown) => {
      reading = undefined;
      throw error;
    });
    return reading;
  };
  for (const path of DOCS_PATHS) {
    servePage(app, path, { find: async () => (await read()).get(path)!, send });
  }
}

async function readPages(
  openApi: Readonly<Record<string, unknown>>,
): Promise<ReadonlyMap<string, StaticPage>> {
  const files = await makeFiles(openApi);
  return new Map(
    files.map(({ path, contentType, bytes }) => [
      path,
      createPage(Buffer.from(bytes), {
        'content-type': contentType,
        'content-security-policy': CONTENT_SECURITY_POLICY,
        // Revalidated on each use, without a body if unchanged.
        'cache-control': 'public, max-age=0',
      }),
    ]),
  );
}

function makeFiles(openApi: Readonly<Record<string, unknown>>): Promise<readonly DocsFile[]> {
  const worker = new Worker(programFile('server/pages/docs-worker.js'), { workerData: openApi });
  // The service may stop meanwhile.
  worker.unref();
  return new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the thread ended with ${code}`)));
  });
}
