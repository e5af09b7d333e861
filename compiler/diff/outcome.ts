/** The outcome of a request, in a form in which two configurations can be compared. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../document/canonical-json.ts';
import type { Document, Step } from '../document/document.ts';
import type { DryRunResult } from '../dry-run/dry-run.ts';
import type { GraphTrace } from '../explain/graph-tracer.ts';
import { HANDLERS } from '../modules/registry/handlers.ts';
import { valueAt } from '../schema/validate.ts';

/** The aspects of an outcome, by name: `status`, `body`, `header location`, `upstream 1`, `settings of compress` … */
export type Outcome = ReadonlyMap<string, string>;

/** Maximum characters of a body that are compared and shown as text. A longer body is compared and shown by its hash. */
const MAX_BODY_CHARS = 200;
/** Fields that say nothing about the configuration. */
const IGNORED_FIELDS: ReadonlySet<string> = new Set(['date', 'content-length', 'transfer-encoding']);
const NO_BODY = JSON.stringify('');
/** Matches aspects that are details of another aspect, or of a step that only one side runs. */
const DETAIL_ASPECT = /^(?:settings of |upstream(?: \d+)? field |header server$|file looked for$)/;
/** Fields of a step whose effects are visible in other aspects, or which only name the step. */
const STRUCTURE_FIELDS: ReadonlySet<string> = new Set(['handler', 'when', 'exclusive', '@id']);

/**
 * Returns the outcome of a request. `undefined` as the result means that the connection was refused. Consumes the response.
 * `ownFiles` are the paths of the configuration files, which file servers hide. They are left out, because they differ without a
 * change of meaning.
 */
export async function outcomeOf(
	result: DryRunResult | undefined,
	trace: GraphTrace | undefined,
	document: Document,
	ownFiles: ReadonlySet<string> = new Set(),
): Promise<Outcome> {
	const outcome = new Map<string, string>();
	if (!result) return outcome.set('connection', 'refused, as nothing listens there');
	const { response, exchange, site } = result;
	if (response) {
		outcome.set('status', String(response.status));
		for (const [name, value] of response.headers) {
			const lowerName = name.toLowerCase();
			if (IGNORED_FIELDS.has(lowerName)) continue;
			const key = `header ${lowerName}`;
			const earlier = outcome.get(key);
			outcome.set(key, earlier === undefined ? value : `${earlier}, ${value}`);
		}
		outcome.set('body', bodyText(await response.text()));
	} else outcome.set('connection', 'closed without an answer');
	exchange.informed.forEach(({ status, headers }, index) => {
		outcome.set(`interim response ${index + 1}`, `${status} ${JSON.stringify([...headers])}`);
	});
	exchange.sent.forEach(({ settings, upstream, request }, index) => {
		const { name: _name, ...pool } = settings;
		const prefix = `upstream${exchange.sent.length > 1 ? ` ${index + 1}` : ''}`;
		outcome.set(prefix, `${request.method} ${upstream.address}${request.target}`);
		outcome.set(`settings of the ${prefix}`, canonicalJson(pool));
		for (const [name, value] of request.headers) {
			const key = `${prefix} field ${name.toLowerCase()}`;
			const earlier = outcome.get(key);
			outcome.set(key, earlier === undefined ? value : `${earlier}, ${value}`);
		}
	});
	const policies = new Map<string, string[]>();
	const hasBody = outcome.has('body') && outcome.get('body') !== NO_BODY;
	for (const event of trace?.events ?? []) {
		if (event.kind !== 'handler' || (!hasBody && HANDLERS.get(event.handler)?.changesBodies)) continue;
		const step = valueAt(document, event.pointer) as Step | undefined;
		const settings = step && unobservedSettings(step, ownFiles);
		if (settings === undefined) continue;
		const handlerPolicies = policies.get(event.handler);
		if (handlerPolicies) handlerPolicies.push(settings);
		else policies.set(event.handler, [settings]);
	}
	for (const [handler, policyTexts] of policies) outcome.set(`settings of \`${handler}\``, policyTexts.join(', '));
	const servingSite = document.sites?.[site];
	if (servingSite) {
		const { tls, logs } = servingSite;
		if (tls !== undefined) outcome.set('settings of `tls`', canonicalJson(tls));
		if (logs !== undefined) outcome.set('settings of `log`', canonicalJson(logs));
	}
	return outcome;
}

/** Returns the names of the aspects in which two outcomes differ, the most important first. Empty if they are equal. */
export function differingAspects(one: Outcome, other: Outcome): string[] {
	const names = [...new Set([...one.keys(), ...other.keys()])].filter(name => one.get(name) !== other.get(name));
	const isChanged = (name: string): boolean => one.has(name) && other.has(name);
	const essentialNames = names.filter(name => isChanged(name) || !DETAIL_ASPECT.test(name));
	// Details are omitted if an essential aspect differs, because they follow from it. If all differing essential aspects are header
	// fields, the settings of steps that change bodies, such as compression, are kept, because they do not follow from fields.
	const shownNames = new Set(essentialNames.length > 0 ? essentialNames : names);
	if (essentialNames.every(name => name.startsWith('header ')))
		for (const name of names) if (changesBody(name)) shownNames.add(name);
	return [...shownNames].sort((a, b) => aspectRank(a) - aspectRank(b));
}

/** Reports whether an aspect consists of the settings of a step that changes bodies. */
function changesBody(aspect: string): boolean {
	const handler = /^settings of `(.*)`$/.exec(aspect)?.[1];
	return handler !== undefined && HANDLERS.get(handler)?.changesBodies === true;
}

/** Returns the rank of an aspect; the most important one has rank 0. */
function aspectRank(name: string): number {
	const rank = ['connection', 'status', 'upstream', 'header location', 'body'].indexOf(name);
	return rank === -1 ? 5 : rank;
}

/** Returns the settings of a step whose effect a dry run does not show, as text; undefined if there are none. */
function unobservedSettings(step: Step, ownFiles: ReadonlySet<string>): string | undefined {
	const observed = HANDLERS.get(step.handler)?.observedFields;
	if (observed === 'all') return undefined;
	const unobserved = Object.entries(step).filter(([name]) => !STRUCTURE_FIELDS.has(name) && !observed?.includes(name));
	if (unobserved.length === 0 && observed) return undefined;
	const text = JSON.stringify(Object.fromEntries(unobserved), (_, value) =>
		Array.isArray(value) ? value.filter(one => !ownFiles.has(one)) : value,
	);
	return canonicalJson(JSON.parse(text));
}

function bodyText(text: string): string {
	if (text.length <= MAX_BODY_CHARS) return JSON.stringify(text);
	const hash = createHash('sha256').update(text).digest('hex').slice(0, 16);
	return `${JSON.stringify(text.slice(0, MAX_BODY_CHARS))}… (${text.length} characters, SHA-256 ${hash}…)`;
}
