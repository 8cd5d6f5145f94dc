// Serves the console at /console/: the files that `npm run build` puts into a folder. They are listed when the service
// starts, so that no path can lead to any other file, and each is read when it is first asked for. The page needs no
// credential: it has no data, and sends the user's with every request to the API.

import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { assert, SagittaError } from '../../common/errors.js';
import { NO_STORE, type RouteReply } from '../wire/reply.js';
import { createPage, type StaticPage, servePage } from './static-page.js';

/** Relative, so that it is right under any prefix that a proxy adds. */
export const CONSOLE_PATH = 'console/';

const INDEX = 'index.html';

/**
 * Only the page's own scripts and styles run, it talks to this service only, and no other page can
 * frame it: a script that got into metadata must reach neither the credential nor another host.
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
].join('; ');

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.webmanifest': 'application/manifest+json; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.wasm': 'application/wasm',
};

/** The name contains a hash of the contents, so that a cached file is never out of date. */
const HASHED_NAME = /^assets\/.*-[\w-]{8,}\.\w+$/;
const CACHE_HASHED = 'public, max-age=31536000, immutable';
/** Revalidated on each use, without a body if unchanged. */
const CACHE_REVALIDATED = 'no-cache';

/** The names become routes, in which other characters would have a meaning. */
const NAME = /^[\w./-]+$/;

/** Readers of the console's files by path below /console/, the page itself as ''; null if they were not built. */
export type ConsolePages = ReadonlyMap<string, () => Promise<StaticPage>> | null;

export async function findConsole(folder: string): Promise<ConsolePages> {
  const names = await listFiles(folder);
  if (!names.has(INDEX)) return null;
  const pages = new Map<string, () => Promise<StaticPage>>();
  for (const name of names) {
    const isEncoded = /\.(br|gz)$/.test(name) && names.has(name.slice(0, name.lastIndexOf('.')));
    if (isEncoded) continue;
    assert(NAME.test(name), `the name of the console's file ${name} needs no encoding in a URL`);
    let page: Promise<StaticPage> | undefined;
    pages.set(name === INDEX ? '' : name, () => {
      page ??= readPage(folder, name, names);
      return page;
    });
  }
  return pages;
}

/** Serves the pages; without any, requests are told how to build them. */
export function serveConsole(
  app: FastifyInstance,
  pages: ConsolePages,
  send: (reply: FastifyReply, found: RouteReply) => FastifyReply,
): void {
  app.get(`/${CONSOLE_PATH.slice(0, -1)}`, async (_request, reply) =>
    send(reply, redirectToConsole()),
  );
  if (pages === null) {
    app.get(`/${CONSOLE_PATH}`, async () => {
      throw new SagittaError(
        'route_not_found',
        'The console has not been built: this server found no files for it. Run npm run build in the source tree and restart the server.',
      );
    });
    return;
  }
  servePage(app, `/${CONSOLE_PATH}*`, {
    find: (path) => {
      const read = pages.get(path);
      if (read !== undefined) return read();
      throw new SagittaError(
        'route_not_found',
        `The path /${CONSOLE_PATH}${path} does not exist; the console is at /${CONSOLE_PATH}.`,
      );
    },
    send,
  });
}

/** From a path on the same level as `console/`. Not kept by caches: a setting removes the console. */
export function redirectToConsole(): RouteReply {
  return {
    status: 307,
    headers: { location: CONSOLE_PATH, 'cache-control': NO_STORE },
    body: '',
  };
}

/** Paths of all files below the folder, with slashes; none if it does not exist. */
async function listFiles(folder: string): Promise<ReadonlySet<string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    },
  );
  const files = entries.filter((entry) => entry.isFile());
  return new Set(
    files.map(({ parentPath, name }) =>
      relative(folder, join(parentPath, name)).replaceAll(sep, '/'),
    ),
  );
}

async function readPage(
  folder: string,
  name: string,
  names: ReadonlySet<string>,
): Promise<StaticPage> {
  const read = (file: string) => readFile(join(folder, file));
  return createPage(
    await read(name),
    {
      'content-security-policy': CONTENT_SECURITY_POLICY,
      'content-type': CONTENT_TYPES[extname(name)] ?? 'application/octet-stream',
      'cache-control': HASHED_NAME.test(name) ? CACHE_HASHED : CACHE_REVALIDATED,
    },
    {
      ...(names.has(`${name}.br`) ? { br: await read(`${name}.br`) } : {}),
      ...(names.has(`${name}.gz`) ? { gzip: await read(`${name}.gz`) } : {}),
    },
  );
}
