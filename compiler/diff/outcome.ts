/** The outcome of a request, in a form in which two configurations can be compared. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../document/canonical-json.ts';
import type { Document, Step } from '../document/document.ts';
import { valueAt } from '../document/json-pointer.ts';
import type { DryRunResult } from '../dry-run/dry-run.ts';
import type { GraphTrace } from '../explain/graph-tracer.ts';
import { HANDLERS } from '../modules/registry/handlers.ts';
import { unreadFileText } from './unknown-parts.ts';

/** The aspects of an outcome, by name: `status`, `body`, `header location`, `upstream 1`, `settings of compress` … */
export type Outcome = ReadonlyMap<string, string>;

/** Maximum characters of a body that are compared and shown as text. A longer body is compared and shown by its hash. */
const MAX_BODY_CHARS = 200;
/** Response fields that are not compared, because they do not depend on the configuration. */
const IGNORED_HEADER_FIELDS: ReadonlySet<string> = new Set(['date', 'content-length', 'transfer-encoding']);
const EMPTY_BODY_TEXT = JSON.stringify('');
/** Matches aspects that only detail others. If only one of two outcomes has one, this is shown only if nothing else differs. */
const DETAIL_ASPECT = /^(?:settings of |upstream(?: \d+)? field |header server$|file looked for$)/;
/** Fields of a step that only name it or decide where it runs. Their effects are visible in other aspects. */
const NON_SETTING_FIELDS: ReadonlySet<string> = new Set(['handler', 'when', 'exclusive', '@id']);

/**
 * Returns the outcome of a request, and consumes its response. `result` is undefined if the connection was refused.
 * `configurationFiles` are the paths of the configuration files, which file servers hide; they are left out of the settings,
 * because different names of these files do not change the meaning.
 */
export async function outcomeOf(
	result: DryRunResult | undefined,
	trace: GraphTrace | undefined,
	document: Document,
	configurationFiles: ReadonlySet<string> = new Set(),
): Promise<Outcome> {
	const aspects = new Map<string, string>();
	if (!result) return aspects.set('connection', 'refused, as nothing listens there');
	const { response, exchange, site } = result;
	const unreadFile = unreadFileText(result);
	if (unreadFile !== undefined) {
		response?.close();
		aspects.set('status', unreadFile).set('body', unreadFile);
	} else if (response) {
		aspects.set('status', String(response.status));
		for (const [name, value] of response.headers) {
			const lowerName = name.toLowerCase();
			if (IGNORED_HEADER_FIELDS.has(lowerName)) continue;
			const key = `header ${lowerName}`;
			const earlierValue = aspects.get(key);
			aspects.set(key, earlierValue === undefined ? value : `${earlierValue}, ${value}`);
		}
		aspects.set('body', bodyText(await response.text()));
	} else aspects.set('connection', 'closed without an answer');
	exchange.interimResponses.forEach(({ status, headers }, index) => {
		aspects.set(`interim response ${index + 1}`, `${status} ${JSON.stringify([...headers])}`);
	});
	exchange.upstreamRequests.forEach(({ settings, upstream, request }, index) => {
		const { name: _name, ...pool } = settings;
		const prefix = `upstream${exchange.upstreamRequests.length > 1 ? ` ${index + 1}` : ''}`;
		aspects.set(prefix, `${request.method} ${upstream.address}${request.target}`);
		aspects.set(`settings of the ${prefix}`, canonicalJson(pool));
		for (const [name, value] of request.headers) {
			const key = `${prefix} field ${name.toLowerCase()}`;
			const earlierValue = aspects.get(key);
			aspects.set(key, earlierValue === undefined ? value : `${earlierValue}, ${value}`);
		}
	});
	const settingsByHandler = new Map<string, string[]>();
	const hasBody = aspects.has('body') && aspects.get('body') !== EMPTY_BODY_TEXT;
	for (const event of trace?.events ?? []) {
		if (event.kind !== 'handler' || (!hasBody && HANDLERS.get(event.handler)?.changesBodies)) continue;
		const step = valueAt(document, event.pointer) as Step | undefined;
		const settings = step && unobservedSettings(step, configurationFiles);
		if (settings === undefined) continue;
		const handlerSettings = settingsByHandler.get(event.handler);
		if (handlerSettings) handlerSettings.push(settings);
		else settingsByHandler.set(event.handler, [settings]);
	}
	for (const [handler, settingTexts] of settingsByHandler)
		aspects.set(`settings of \`${handler}\``, settingTexts.join(', '));
	const servingSite = document.sites?.[site];
	if (servingSite) {
		const { tls, logs } = servingSite;
		if (tls !== undefined) aspects.set('settings of `tls`', canonicalJson(tls));
		if (logs !== undefined) aspects.set('settings of `log`', canonicalJson(logs));
	}
	return aspects;
}

/** Returns the names of the aspects in which two outcomes differ, the most important first. Empty if they are equal. */
export function differingAspects(before: Outcome, after: Outcome): string[] {
	const differingNames = [...new Set([...before.keys(), ...after.keys()])].filter(
		name => before.get(name) !== after.get(name),
	);
	const isInBoth = (name: string): boolean => before.has(name) && after.has(name);
	const essentialNames = differingNames.filter(name => isInBoth(name) || !DETAIL_ASPECT.test(name));
	// If an essential aspect differs, details follow from it and are omitted. The settings of steps that change bodies, such as
	// compression, do not follow from header fields, so they are kept if only header fields differ.
	const shownNames = new Set(essentialNames.length > 0 ? essentialNames : differingNames);
	if (essentialNames.every(name => name.startsWith('header ')))
		for (const name of differingNames) if (isBodyStepSettings(name)) shownNames.add(name);
	return [...shownNames].sort((a, b) => aspectRank(a) - aspectRank(b));
}

/** Reports whether an aspect is the settings of a handler that changes bodies, such as `compress`. */
function isBodyStepSettings(aspect: string): boolean {
	const handler = /^settings of `(.*)`$/.exec(aspect)?.[1];
	return handler !== undefined && HANDLERS.get(handler)?.changesBodies === true;
}

/** Returns the rank of an aspect for sorting: 0 for the most important one. */
function aspectRank(name: string): number {
	const rank = ['connection', 'status', 'upstream', 'header location', 'body'].indexOf(name);
	return rank === -1 ? 5 : rank;
}

/** Returns the settings of a step whose effects are not visible in a dry run, as JSON; undefined if there are none. */
function unobservedSettings(step: Step, configurationFiles: ReadonlySet<string>): string | undefined {
	const observedFields = HANDLERS.get(step.handler)?.observedFields;
	if (observedFields === 'all') return undefined;
	const unobservedEntries = Object.entries(step).filter(
		([name]) => !NON_SETTING_FIELDS.has(name) && !observedFields?.includes(name),
	);
	if (unobservedEntries.length === 0 && observedFields) return undefined;
	const settingsJson = JSON.stringify(Object.fromEntries(unobservedEntries), (_, value) =>
		Array.isArray(value) ? value.filter(element => !configurationFiles.has(element)) : value,
	);
	return canonicalJson(JSON.parse(settingsJson));
}

function bodyText(text: string): string {
	if (text.length <= MAX_BODY_CHARS) return JSON.stringify(text);
	const hash = createHash('sha256').update(text).digest('hex').slice(0, 16);
	return `${JSON.stringify(text.slice(0, MAX_BODY_CHARS))}… (${text.length} characters, SHA-256 ${hash}…)`;
}
