// Settings for servers under test on a machine that is busy with something else.

/**
 * A busy machine delays the event loop, and a server refuses requests when it is delayed for a
 * second. Tests of that bound set it themselves.
 */
export const PATIENT_SETTINGS = { SAGITTA_EVENT_LOOP_DELAY_MS_MAX: '60000' } as const;
export const PATIENT_LIMITS = { eventLoopDelayMsMax: 60_000 } as const;
