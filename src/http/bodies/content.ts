// What bodies and replies are made of: JSON in, JSON out, and a clear refusal of the rest.

import type { FastifyInstance, FastifyRequest } from 'fastify';
import { SagittaError } from '../../errors.js';
import type { Limits } from '../../limits.js';
import { readBody } from './read-body.js';

/** Hands bodies over as bytes; the handlers parse them. */
export function addBodyParsers(app: FastifyInstance, limits: Limits): void {
  app.removeAllContentTypeParsers();
  for (const type of ['application/json', 'application/merge-patch+json']) {
    app.addContentTypeParser(type, async (request: FastifyRequest) => {
      const why = refuseContent(request, type);
      if (why !== null) throw new SagittaError('unsupported_media_type', why);
      return readBody(request, limits);
    });
  }
}

function refuseContent(request: FastifyRequest, type: string): string | null {
  const { 'content-type': contentType = '', 'content-encoding': encoding } = request.headers;
  if (encoding !== undefined && encoding !== 'identity') {
    return `The body is encoded as ${encoding}; only plain bodies are read.`;
  }
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1];
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
    return `The body is in ${charset}; JSON is UTF-8.`;
  }
  if (type === 'application/merge-patch+json' && request.method !== 'PATCH') {
    return `${type} is for PATCH; send application/json.`;
  }
  return null;
}

/** Whether the header Accept lets JSON through; the most specific range decides. */
export function acceptsJson(accept: string | undefined): boolean {
  if (accept === undefined || accept === '' || accept === '*/*') return true;
  const ranges = accept.split(',').map((range) => range.split(';').map((part) => part.trim()));
  for (const wanted of ['application/json', 'application/*', '*/*']) {
    const range = ranges.find(([type]) => type?.toLowerCase() === wanted);
    if (range !== undefined) return !range.some((part) => /^q=0(\.0*)?$/i.test(part));
  }
  return false;
}
