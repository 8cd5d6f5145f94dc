// Serves a file that all requests share the bytes of: a slow reader holds neither a file descriptor nor
// memory of its own. Chooses among the encodings that exist of it, and replies 304 where the client has it.

import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { applyIfNoneMatch, etagOf } from '../wire/conditional.js';
import { chooseEncoding } from '../wire/media-types.js';
import type { RouteReply } from '../wire/reply.js';

/** Compressed forms of files, in the order of preference. */
const ENCODINGS = ['br', 'gzip'] as const;
type Encoding = (typeof ENCODINGS)[number];

/** The replies with a file: as it is, and in the encodings that exist. */
export interface StaticPage {
  readonly plain: RouteReply;
  readonly encoded: Readonly<Partial<Record<Encoding, RouteReply>>>;
}

/** Links to other sites do not tell them where they were, nor can their pages reach this one. */
const PAGE_HEADERS = {
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
} as const;

/**
 * Replies with the page that `find` returns, at each request for the path; it is given what `*` in the path stands
 * for.
 */
export function servePage(
  app: FastifyInstance,
  path: string,
  options: {
    find: (rest: string) => StaticPage | Promise<StaticPage>;
    send: (reply: FastifyReply, found: RouteReply) => FastifyReply;
  },
): void {
  app.get(path, async (request, reply) => {
    const { '*': rest = '' } = request.params as { '*'?: string };
    const found = chooseReply(await options.find(rest), request.headers);
    return options.send(reply, applyIfNoneMatch(found, request.headers['if-none-match']));
  });
}

/** `headers` are sent with every form of the file; each form has an entity tag of its own. */
export function createPage(
  bytes: Buffer,
  headers: Readonly<Record<string, string>>,
  encoded: Readonly<Partial<Record<Encoding, Buffer>>> = {},
): StaticPage {
  const forms = Object.entries(encoded);
  const shared = {
    ...PAGE_HEADERS,
    ...headers,
    ...(forms.length === 0 ? {} : { vary: 'accept-encoding' }),
  };
  const replyWith = (body: Buffer, others: Readonly<Record<string, string>> = {}): RouteReply => ({
    status: 200,
    headers: { ...shared, ...others, etag: etagOf(body) },
    body,
  });
  return {
    plain: replyWith(bytes),
    encoded: Object.fromEntries(
      forms.map(([encoding, body]) => [
        encoding,
        replyWith(body, { 'content-encoding': encoding }),
      ]),
    ),
  };
}

function chooseReply({ plain, encoded }: StaticPage, headers: IncomingHttpHeaders): RouteReply {
  const offered = ENCODINGS.filter((encoding) => encoded[encoding] !== undefined);
  const chosen = chooseEncoding(headers['accept-encoding'], offered);
  return chosen === null ? plain : encoded[chosen]!;
}
