/** The names of the events that modules count. */

/**
 * The events, in lower case with underscores. Each name is a value of the label `event` of `svc_module_events_total`. Endpoints
 * of the Admin API refer to events by the same names, so that they cannot ask for an event that no module counts.
 */
export const MODULE_EVENTS = ['replace_encoded_response'] as const;
export type ModuleEvent = (typeof MODULE_EVENTS)[number];
