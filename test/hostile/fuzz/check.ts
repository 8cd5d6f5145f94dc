// What every reply must satisfy: it conforms to the OpenAPI document, and the service has not failed.

import type { Json } from '../../../src/common/types.js';
import { ReplyRules } from '../../conformance/reply-rules.js';
import type { ApiDocument } from './document.js';
import type { WireReply, WireRequest } from './wire.js';
import { asObject } from './world.js';

/** Failures of the service, whatever the document says. */
const FAILURES = [500, 501, 502];
/** Caused by a model whose vectors have a different dimension than the collection; requests choose both. */
const ENDPOINT_FAILURE = 'embedding_failed';

export interface Checked {
  readonly complaints: readonly string[];
  /** The body if it is JSON. */
  readonly json: Json | undefined;
  /** Whether the request was not HTTP, so that the service knows neither path nor headers. */
  readonly isUnread: boolean;
}

export class ReplyCheck {
  readonly #rules: ReplyRules;

  constructor(document: ApiDocument) {
    this.#rules = new ReplyRules(document.json);
  }

  check({ method, target, headers }: WireRequest, reply: WireReply): Checked {
    const complaints: string[] = [];
    const type = reply.headers['content-type'] ?? '';
    const text = reply.body.toString();
    let json: Json | undefined;
    try {
      if (/[/+]json\b/.test(type) && text !== '') json = JSON.parse(text) as Json;
      if (type.startsWith('application/x-ndjson')) checkLines(text);
    } catch {
      complaints.push(`the body is not ${type}`);
    }
    const isFailure = FAILURES.includes(reply.status) && asObject(json).code !== ENDPOINT_FAILURE;
    if (isFailure) complaints.unshift(`the status is ${reply.status}`);
    // A stream of lines may be empty.
    const mayBeEmpty = [304, 307].includes(reply.status) || method === 'HEAD';
    const isLines = type.startsWith('application/x-ndjson');
    if (text === '' && !mayBeEmpty && !isLines) complaints.push('there is no body');
    const broken = this.#rules.check(
      { method, path: target, headers: Object.fromEntries(headers) },
      { status: reply.status, headers: reply.headers, text, json },
    );
    const isUnread = isReplyToUnreadRequest(json);
    const kept = broken.filter(
      (complaint) => !(isUnread && /\/instance|X-Request-Id/.test(complaint)),
    );
    return { complaints: [...complaints, ...kept], json, isUnread };
  }
}

function isReplyToUnreadRequest(json: Json | undefined): boolean {
  const { instance, code } = asObject(json);
  return instance === '' && UNREAD_CODES.includes(String(code));
}

const UNREAD_CODES = ['invalid_request', 'limit_exceeded', 'deadline_exceeded'];

function checkLines(text: string): void {
  if (text !== '' && !text.endsWith('\n')) throw new Error('the last line is cut');
  for (const line of text.split('\n')) if (line !== '') JSON.parse(line);
}
