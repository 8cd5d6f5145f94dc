// Serves a folder that the build fills: the console or the API reference. Its files are listed when the service starts,
// so that no path can lead to any other file, and each is read when it is first asked for. They need no credential:
// they hold no data, and the page sends the user's credential with its requests to the API.

import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { assert, SagittaError } from '../../common/errors.js';
import type { RouteReply } from '../wire/reply.js';
import { NO_STORE } from '../wire/reply.js';
import { createPage, type StaticPage, servePage } from './static-page.js';

const INDEX = 'index.html';

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

/** Readers of the files by their path in the folder; index.html as ''. */
export type FolderPages = ReadonlyMap<string, () => Promise<StaticPage>>;

/** Lists the pages of a folder; null if the folder was not built. */
export async function findPages(
  folder: string,
  contentSecurityPolicy: readonly string[],
): Promise<FolderPages | null> {
  const names = await listFiles(folder);
  if (!names.has(INDEX)) return null;
  const pages = new Map<string, () => Promise<StaticPage>>();
  for (const name of names) {
    const isEncoded = /\.(br|gz)$/.test(name) && names.has(name.slice(0, name.lastIndexOf('.')));
    if (isEncoded) continue;
    assert(NAME.test(name), `the name of the file ${name} needs no encoding in a URL`);
    let page: Promise<StaticPage> | undefined;
    pages.set(name === INDEX ? '' : name, () => {
      page ??= readPage(folder, name, { names, contentSecurityPolicy });
      return page;
    });
  }
  return pages;
}

/**
 * Serves the pages below `path`, such as `docs/`, and leads there from the path without a slash. `title` names them in
 * messages. Without pages, requests are told how to build them.
 */
export function serveFolder(
  app: FastifyInstance,
  path: string,
  options: {
    readonly title: string;
    readonly pages: FolderPages | null;
    readonly send: (reply: FastifyReply, found: RouteReply) => FastifyReply;
  },
): void {
  const { title, pages, send } = options;
  app.get(`/${path.slice(0, -1)}`, async (_request, reply) => send(reply, redirectTo(path)));
  if (pages === null) {
    app.get(`/${path}`, async () => {
      throw new SagittaError(
        'route_not_found',
        `The ${title} has not been built: this server found no files for it. Run npm run build in the source tree and restart the server.`,
      );
    });
    return;
  }
  servePage(app, `/${path}*`, {
    find: (rest) => {
      const read = pages.get(rest);
      if (read !== undefined) return read();
      throw new SagittaError(
        'route_not_found',
        `The path /${path}${rest} does not exist; the ${title} is at /${path}.`,
      );
    },
    send,
  });
}

/**
 * Leads to a path that is relative, so that it is right under any prefix that a proxy adds. Not kept by caches: a setting
 * may remove the page.
 */
export function redirectTo(path: string): RouteReply {
  return { status: 307, headers: { location: path, 'cache-control': NO_STORE }, body: '' };
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
  options: {
    readonly names: ReadonlySet<string>;
    readonly contentSecurityPolicy: readonly string[];
  },
): Promise<StaticPage> {
  const { names, contentSecurityPolicy } = options;
  const read = (file: string) => readFile(join(folder, file));
  return createPage(
    await read(name),
    {
      'content-security-policy': contentSecurityPolicy.join('; '),
      'content-type': CONTENT_TYPES[extname(name)] ?? 'application/octet-stream',
      'cache-control': HASHED_NAME.test(name) ? CACHE_HASHED : CACHE_REVALIDATED,
    },
    {
      ...(names.has(`${name}.br`) ? { br: await read(`${name}.br`) } : {}),
      ...(names.has(`${name}.gz`) ? { gzip: await read(`${name}.gz`) } : {}),
    },
  );
}
