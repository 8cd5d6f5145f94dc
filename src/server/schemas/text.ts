// The text index of a collection, and full-text queries.

import { z } from 'zod';
import type { Limits } from '../../common/limits.js';
import { B_DEFAULT, K1_DEFAULT, TEXT_LANGUAGES } from '../../common/text-settings.js';
import type { BasicSchemas } from './basics.js';

/** Beyond 100, a score is nearly proportional to the number of repetitions. */
const K1_MAX = 100;

export function textSchemas(limits: Limits, { path }: BasicSchemas) {
  const fields = z
    .array(path)
    .min(1)
    .max(limits.textFieldsMax)
    .refine((paths) => new Set(paths).size === paths.length, 'Expected different paths.')
    .meta({
      description: `Metadata paths whose strings, and strings in arrays, are searched as one text: at most ${limits.textFieldsMax}.`,
      examples: [['title', 'abstract']],
    });
  const language = z
    .enum(TEXT_LANGUAGES)
    .meta({
      id: 'TextLanguage',
      description: 'The language of a Snowball algorithm.',
      examples: ['english'],
    })
    .nullable()
    .meta({
      description:
        'The language of the Snowball algorithm that reduces words to their stems, in texts and queries; null for unchanged words.',
      examples: ['english'],
    });
  const stopWords = z
    .array(z.string().min(1).max(limits.textStopWordCharactersMax))
    .max(limits.textStopWordsMax)
    .meta({
      description: `Words that are ignored, at most ${limits.textStopWordsMax}. Compared before stemming, regardless of case.`,
      examples: [['the', 'of']],
    });
  const k1 = z
    .number()
    .min(0)
    .max(K1_MAX)
    .meta({ description: 'BM25: how quickly repetitions of a word stop counting.' });
  const b = z
    .number()
    .min(0)
    .max(1)
    .meta({ description: 'BM25: how much long texts are penalized.' });
  return {
    input: z
      .strictObject({
        fields,
        language: language.default(null),
        stop_words: stopWords.default([]),
        k1: k1.default(K1_DEFAULT),
        b: b.default(B_DEFAULT),
      })
      .meta({
        id: 'TextSettingsInput',
        description: 'Indexes text of the metadata for full-text queries.',
        examples: [{ fields: ['title', 'abstract'], language: 'english' }],
      }),
    record: z.object({ fields, language, stop_words: stopWords, k1, b }).meta({
      id: 'TextSettings',
      description: 'The text index of a collection; absent if there is none.',
      examples: [{ fields: ['title'], language: 'english', stop_words: [], k1: 1.2, b: 0.75 }],
    }),
  };
}

export function textQuerySchema(limits: Limits) {
  const members = {
    query: z
      .string()
      .min(1)
      .max(limits.textQueryCharactersMax)
      .meta({
        description: `Text whose words are searched for, in any order: at most ${limits.textTermsMax} different ones. A word that occurs twice counts twice.`,
        examples: ['domesticated animal'],
      }),
    match: z.enum(['any', 'all']).default('any').meta({
      description: 'Whether vectors must contain any of the words or all of them.',
    }),
  };
  return z.strictObject(members).meta({
    id: 'TextQuery',
    description:
      'Words to search for in place of a vector. Matches are ranked by BM25. Only for collections with `text`.',
    examples: [{ query: 'domesticated animal' }],
  });
}
