// Serves the console at /console/: the files that `npm run build` writes to dist/console.

import type { FastifyInstance, FastifyReply } from 'fastify';
import type { RouteReply } from '../wire/reply.js';
import { type FolderPages, findPages, serveFolder } from './static-folder.js';

/** Relative, so that it is correct under any prefix that a proxy adds. */
export const CONSOLE_PATH = 'console/';

/**
 * The page may run only its own scripts and styles and connect only to this service, and no other page may frame it: a
 * script in metadata must reach neither the credential nor another host.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
];

export function findConsole(folder: string): Promise<FolderPages | null> {
  return findPages(folder, CONTENT_SECURITY_POLICY);
}

export function serveConsole(
  app: FastifyInstance,
  pages: FolderPages | null,
  send: (reply: FastifyReply, found: RouteReply) => FastifyReply,
): void {
  serveFolder(app, CONSOLE_PATH, { title: 'console', pages, send });
}
