// ETags and conditional requests (RFC 9110, section 13).

import { createHash } from 'node:crypto';
import { SagittaError } from '../../common/errors.js';
import { tagOfPlain } from './content-encodings.js';
import type { RouteReply, StoredReply } from './reply.js';

/** The entity tag of a body. */
export function etagOf(body: string | Buffer): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
}

/** The entity tag of a version in the database, which contains only characters that are valid in a tag. */
export const etagOfVersion = (version: string): string => `"${version}"`;

/** Returns 304 without a body if the client has this representation, else the reply. */
export function applyIfNoneMatch<Reply extends RouteReply>(
  reply: Reply,
  ifNoneMatch: string | undefined,
): Reply | StoredReply {
  if (ifNoneMatch === undefined) return reply;
  const tag = reply.headers.etag!;
  const tags = parseTags(ifNoneMatch, 'If-None-Match');
  // Weak comparison: W/"x" matches "x". The compressed representation has the same contents.
  const isSame = (known: string) => [known, tagOfPlain(known)].includes(tag);
  const found = tags === '*' ? tag : tags.map((known) => known.replace(/^W\//, '')).find(isSame);
  if (found === undefined) return reply;
  const { 'cache-control': cacheControl, vary } = reply.headers;
  const headers = { etag: found, 'cache-control': cacheControl!, ...(vary && { vary }) };
  return { status: 304, headers, body: '' };
}

/**
 * The version that If-Match requires a write to find; undefined if any version will do. Throws `precondition_failed` if
 * the current version is not listed.
 */
export async function checkIfMatch(
  ifMatch: string | undefined,
  currentVersion: () => Promise<string>,
): Promise<string | undefined> {
  if (ifMatch === undefined) return undefined;
  const tags = parseTags(ifMatch, 'If-Match');
  if (tags === '*') return undefined;
  const version = await currentVersion();
  // Strong comparison: a weak tag never matches.
  if (tags.map(tagOfPlain).includes(etagOfVersion(version))) return version;
  throw new SagittaError(
    'precondition_failed',
    `If-Match is ${ifMatch}; the vector's ETag is ${etagOfVersion(version)}.`,
  );
}

const TAG = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/;

function parseTags(header: string, name: string): '*' | string[] {
  const text = header.trim();
  if (text === '*') return text;
  const tags = text.split(',').map((tag) => tag.trim());
  if (tags.every((tag) => TAG.test(tag))) return tags;
  throw new SagittaError(
    'invalid_request',
    `${name} is ${JSON.stringify(header)}; expected "*" or a comma-separated list of quoted entity tags.`,
  );
}
