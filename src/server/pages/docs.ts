// Serves the API reference at /docs/, and the documents for users beside it, such as /docs/api-guide.html, all without
// a network. The reference is Swagger UI from files that the build copies from its package; it loads the document from
// /openapi.json. The build renders the other documents.

import type { FastifyInstance, FastifyReply } from 'fastify';
import { packageFile } from '../../common/package-files.js';
import type { RouteReply } from '../wire/reply.js';
import { findPages, serveFolder } from './static-folder.js';

const PATH = 'docs/';
const FOLDER = packageFile('dist/app/docs');

/** Allows only the page's own files, and inline styles, which Swagger UI uses. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
];

export async function serveDocs(
  app: FastifyInstance,
  send: (reply: FastifyReply, found: RouteReply) => FastifyReply,
): Promise<void> {
  const pages = await findPages(FOLDER, CONTENT_SECURITY_POLICY);
  serveFolder(app, PATH, { title: 'API reference', pages, send });
}
