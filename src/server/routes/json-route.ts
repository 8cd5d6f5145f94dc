// Routes that take and return JSON: their schemas parse the body and write the reply, so that handlers deal neither
// with text nor with the names of the API.

import type { z } from 'zod';
import type { NamedCollection } from '../auth/authorization.js';
import type { VectorsAt } from '../bodies/json-body.js';
import { readJsonBody } from '../ingest/parse-request.js';
import { rateKindOf } from '../limits/rate-limit.js';
import { createReplyWriter, type RecordOf } from '../replies/record-writer.js';
import type { RequestContext } from '../requests/request-context.js';
import { defineRoute, type Route, type RouteServices } from '../requests/route.js';
import type { Properties } from '../wire/property-names.js';
import { jsonReply } from '../wire/reply.js';

/** `Body` is null for a route without a body. */
interface JsonRoute<
  Query extends z.ZodObject,
  Body extends z.ZodType | null,
  Reply extends z.ZodObject,
> extends Omit<Route<Query>, 'body' | 'reply' | 'parse' | 'touches' | 'handle'> {
  readonly body: Body;
  /** The member of the body that contains vectors, if any. */
  readonly vectorsAt?: VectorsAt;
  readonly reply: Reply;
  touches?(
    request: RequestContext<Properties<z.output<Query>>>,
    body: BodyOf<Body>,
  ): readonly NamedCollection[];
  handle(
    request: RequestContext<Properties<z.output<Query>>>,
    body: BodyOf<Body>,
  ): RecordOf<Reply> | Promise<RecordOf<Reply>>;
}

type BodyOf<Body extends z.ZodType | null> = Body extends z.ZodType
  ? Properties<z.output<Body>>
  : null;

export function defineJsonRoute<
  Query extends z.ZodObject,
  Body extends z.ZodType | null,
  Reply extends z.ZodObject,
>(services: RouteServices, { vectorsAt, handle, ...route }: JsonRoute<Query, Body, Reply>): Route {
  const writeReply = createReplyWriter(route.reply);
  // The reply to a write, which has taken effect, is always sent.
  const isRefusable = rateKindOf(route.access) !== 'write' || route.method === 'GET';
  return defineRoute<Query, BodyOf<Body>>({
    ...route,
    async parse(request) {
      const body = route.body && (await readJsonBody(services, request, route.body, vectorsAt));
      return body as BodyOf<Body>;
    },
    async handle(request, body) {
      const found = await handle(request, body);
      const reserve = (count: number) => isRefusable && request.reserveReply(count);
      return jsonReply(await writeReply(found, reserve));
    },
  });
}
