// Serves a folder that the build fills: the console or the API reference. Its files are listed when the service starts,
// so that no path can lead to another file, and each is read at its first request. All requests share the bytes, so
// that a slow reader holds neither a file descriptor nor memory. The files contain no data and need no credential: the
// page sends the user's credential with its requests to the API.

import { readdir, readFile } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { extname, join, relative, sep } from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { assert, SagittaError } from '../../common/errors.js';
import { applyIfNoneMatch, etagOf } from '../wire/conditional.js';
import { chooseEncoding } from '../wire/media-types.js';
import { NO_STORE, type RouteReply } from '../wire/reply.js';

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

/** Extensions of compressed files by their encoding, the most preferred first. */
const ENCODINGS = { br: '.br', gzip: '.gz' } as const;
type Encoding = keyof typeof ENCODINGS;
const ENCODING_NAMES = Object.keys(ENCODINGS) as Encoding[];

const gunzipped = promisify(gunzip);

/** The name contains a hash of the contents, so that a cached file is never outdated. */
const HASHED_NAME = /^assets\/.*-[\w-]{8,}\.\w+$/;
const CACHE_HASHED = 'public, max-age=31536000, immutable';
/** Revalidated at each use, without a body if unchanged. */
const CACHE_REVALIDATED = 'no-cache';

/** Links do not disclose the page to other sites, and pages of other sites cannot access its window. */
const PAGE_HEADERS = {
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
} as const;

/** Names become routes, in which other characters would have a meaning. */
const NAME = /^[\w./-]+$/;

/** A file as replies: uncompressed, and in the available encodings. */
interface StaticFile {
  readonly plain: RouteReply;
  readonly encoded: Readonly<Partial<Record<Encoding, RouteReply>>>;
}

/** Readers of the files by their path in the folder, which is empty for index.html. */
export type FolderPages = ReadonlyMap<string, () => Promise<StaticFile>>;

/** Lists the files of a folder; null if the folder has not been built. */
export async function findPages(
  folder: string,
  contentSecurityPolicy: readonly string[],
): Promise<FolderPages | null> {
  const names = await listFiles(folder);
  if (!names.has(INDEX)) return null;
  const pages = new Map<string, () => Promise<StaticFile>>();
  for (const name of new Set([...names].map((each) => each.replace(/\.(br|gz)$/, '')))) {
    assert(NAME.test(name), `the name of the file ${name} needs no encoding in a URL`);
    let file: Promise<StaticFile> | undefined;
    pages.set(name === INDEX ? '' : name, () => {
      file ??= readStaticFile(folder, name, { names, contentSecurityPolicy });
      return file;
    });
  }
  return pages;
}

/**
 * Serves the pages below `path`, such as `docs/`, and redirects there from the path without a slash. `title` names them
 * in messages. Without pages, an error tells how to build them.
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
  app.get(`/${path}*`, async ({ params, headers }, reply) => {
    const { '*': rest = '' } = params as { '*'?: string };
    const read = pages.get(rest);
    if (read === undefined) {
      throw new SagittaError(
        'route_not_found',
        `The path /${path}${rest} does not exist; the ${title} is at /${path}.`,
      );
    }
    return send(
      reply,
      applyIfNoneMatch(chooseReply(await read(), headers), headers['if-none-match']),
    );
  });
}

/**
 * Redirects to a path that is relative, and so is correct under any prefix that a proxy adds. Not cached, since a
 * setting may remove the page.
 */
export function redirectTo(path: string): RouteReply {
  return { status: 307, headers: { location: path, 'cache-control': NO_STORE }, body: '' };
}

/** Paths of all files below the folder, with slashes; empty if it does not exist. */
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

/** All representations share the headers; each has its own entity tag. */
async function readStaticFile(
  folder: string,
  name: string,
  options: {
    readonly names: ReadonlySet<string>;
    readonly contentSecurityPolicy: readonly string[];
  },
): Promise<StaticFile> {
  const encodings = ENCODING_NAMES.filter((encoding) =>
    options.names.has(name + ENCODINGS[encoding]),
  );
  const replyWith = async (encoding?: Encoding): Promise<RouteReply> => {
    // Of large files, the folder has only the compressed form.
    const isUnpacked = encoding === undefined && !options.names.has(name);
    const suffix = isUnpacked ? ENCODINGS.gzip : encoding === undefined ? '' : ENCODINGS[encoding];
    const bytes = await readFile(join(folder, name + suffix));
    const body = isUnpacked ? await gunzipped(bytes) : bytes;
    const headers = {
      ...PAGE_HEADERS,
      'content-security-policy': options.contentSecurityPolicy.join('; '),
      'content-type': CONTENT_TYPES[extname(name)] ?? 'application/octet-stream',
      'cache-control': HASHED_NAME.test(name) ? CACHE_HASHED : CACHE_REVALIDATED,
      ...(encodings.length > 0 && { vary: 'accept-encoding' }),
      ...(encoding && { 'content-encoding': encoding }),
      etag: etagOf(body),
    };
    return { status: 200, headers, body };
  };
  // Together, so that no rejection stays unhandled when files disappear while the console is built again.
  const [plain, ...encoded] = await Promise.all([
    replyWith(),
    ...encodings.map((encoding) => replyWith(encoding)),
  ]);
  return { plain, encoded: Object.fromEntries(encoded.map((reply, i) => [encodings[i]!, reply])) };
}

function chooseReply({ plain, encoded }: StaticFile, headers: IncomingHttpHeaders): RouteReply {
  const offered = ENCODING_NAMES.filter((encoding) => encoded[encoding] !== undefined);
  const chosen = chooseEncoding(headers['accept-encoding'], offered);
  return chosen === null ? plain : encoded[chosen]!;
}
