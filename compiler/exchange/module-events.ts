/** The names of the events that modules count. */

/**
 * The events, in lower case with underscores. A name is the label `event` of `svc_module_events_total`, and what an endpoint of the
 * Admin API asks for. The list is the type of both, so that an endpoint cannot ask for an event that no module counts.
 */
export const MODULE_EVENTS = ['replace_encoded_response'] as const;
export type ModuleEvent = (typeof MODULE_EVENTS)[number];
