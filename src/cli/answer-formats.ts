// What answers to a file of queries are written as. Apart from the work, so that --help need not load it.

export const ANSWER_FORMATS = ['ndjson', 'csv', 'arrow', 'arrow-stream', 'ivecs'] as const;
export type AnswerFormat = (typeof ANSWER_FORMATS)[number];
