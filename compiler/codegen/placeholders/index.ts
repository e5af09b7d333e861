/** All placeholders, and functions that look them up by full name. */

import { fakeLeases } from '../context/fake-leases.ts';
import { compileMappedValue, MAPPED_VARIABLE_PREFIX } from '../context/mapped-names.ts';
import { HANDLER_RESULT_PLACEHOLDERS } from './handled.ts';
import { MACHINE_PLACEHOLDERS } from './machine.ts';
import { OUTCOME_PLACEHOLDERS } from './outcome.ts';
import type { HostFacts, Placeholder, PlaceholderReader, PlaceholderScope } from './placeholder.ts';
import { REQUEST_PLACEHOLDERS } from './request.ts';
import { TLS_PLACEHOLDERS } from './tls.ts';

export const placeholders: readonly Placeholder[] = [
	...MACHINE_PLACEHOLDERS,
	...REQUEST_PLACEHOLDERS,
	...TLS_PLACEHOLDERS,
	...OUTCOME_PLACEHOLDERS,
	...HANDLER_RESULT_PLACEHOLDERS,
];

const EXACT_PLACEHOLDERS: ReadonlyMap<string, Placeholder> = new Map(
	placeholders.filter(p => !p.name.endsWith('*')).map(p => [p.name, p]),
);
/**
 * Families of placeholders, longest name first, so that `http.request.uri.path.file.*` is tried before `http.request.uri.path.*`.
 */
const PLACEHOLDER_FAMILIES: readonly Placeholder[] = placeholders
	.filter(p => p.name.endsWith('*'))
	.sort((a, b) => b.name.length - a.name.length);

/**
 * Compiles the placeholder with this full name. Returns a string if its value is constant, and undefined if the name is unknown.
 */
export function compilePlaceholder(name: string, scope: PlaceholderScope): PlaceholderReader | string | undefined {
	const exactPlaceholder = EXACT_PLACEHOLDERS.get(name);
	if (exactPlaceholder) return exactPlaceholder.compile('', scope);
	for (const family of PLACEHOLDER_FAMILIES) {
		const prefix = family.name.slice(0, -1);
		if (!name.startsWith(prefix)) continue;
		const reader = family.compile(name.slice(prefix.length), scope);
		if (reader !== undefined) return reader;
	}
	return scope.isMapped(name) ? compileMappedValue(MAPPED_VARIABLE_PREFIX + name) : undefined;
}

/** Matches placeholders whose values come from header fields. */
const FIELD_PLACEHOLDER_PATTERN =
	/^http\.(?:request\.(?:header|cookie)|response\.header|reverse_proxy\.header|intercept\.header)\./;

/** Reports whether the value of a placeholder consists of the bytes of a field, one character per byte, rather than of text. */
export function isFieldPlaceholder(fullName: string): boolean {
	return FIELD_PLACEHOLDER_PATTERN.test(fullName);
}

/** Facts for checking a configuration when the machine that will serve it is unknown. */
export const UNKNOWN_HOST_FACTS: HostFacts = {
	hostname: '',
	os: '',
	arch: '',
	workingDirectory: '',
	env: () => undefined,
};

const CHECK_SCOPE: PlaceholderScope = {
	facts: UNKNOWN_HOST_FACTS,
	clientIp: () => '',
	isMapped: () => false,
	files: () => fakeLeases.lease('files', {}),
	needsBody: () => {},
};

/** Reports whether a full name such as `http.request.header.Accept` is a placeholder that this build provides. */
export function isKnownPlaceholder(fullName: string): boolean {
	return compilePlaceholder(fullName, CHECK_SCOPE) !== undefined;
}

/** Returns the full names of all placeholders, for completion and "did you mean". A `*` at the end stands for a parameter. */
export function placeholderNames(): readonly string[] {
	return placeholders.map(placeholder => placeholder.name);
}
