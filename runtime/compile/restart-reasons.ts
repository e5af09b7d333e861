/** Determines which changes of a document a running process cannot make (service specification, rules for loads). */
import { socketText } from '../../compiler/codegen/plan/planned-socket.ts';
import { coveringWildcards } from '../../compiler/codegen/plan/server-names.ts';
import type { Document } from '../../compiler/document/document.ts';
import { startupChanges } from '../../compiler/schema/startup-settings.ts';
import type { ListenerAddress } from '../listeners/listener-address.ts';
import type { DocumentImage } from '../worker/document-image.ts';
import type { RestartReason } from './load-results.ts';

/** Facts about the process that the decision needs in addition to the two documents. */
export interface ProcessFacts {
	/**
	 * True if the process was started without a configuration. Its Admin API then exists regardless of the option, and it may add
	 * plaintext listeners until it has some.
	 */
	readonly unconfigured: boolean;
	/**
	 * Every host name that the process has served over TLS since its start, including wildcards. A name that was removed can be
	 * added again, and so can one that a wildcard covers.
	 */
	readonly served: ReadonlySet<string>;
}

/** Returns why `after` cannot replace `before` in this process; empty if it can. */
export function restartReasons(
	before: DocumentImage,
	after: DocumentImage,
	{ unconfigured, served }: ProcessFacts,
): RestartReason[] {
	const reasons: RestartReason[] = [];
	listenerReasons(before, after, unconfigured && before.listeners.length === 0, reasons);
	tlsReasons(before, after, served, reasons);
	for (const { setting } of startupChanges(
		withAdmin(before.document, unconfigured),
		withAdmin(after.document, unconfigured),
	)) {
		const message = `\`${setting}\` cannot be changed while the server runs.`;
		reasons.push({ code: 'setting_changed', subject: setting, message });
	}
	return reasons;
}

/** Maximum number of reported reasons about host names. A longer list would not help. */
const MAX_NAMES = 50;

/** Adds the Admin API to the document of a process that was started without a configuration and always has one. */
function withAdmin(document: Document, always: boolean): Document {
	if (!always || document.settings?.admin) return document;
	return { ...document, settings: { ...document.settings, admin: {} } };
}

/** Returns reasons about new TLS host names, and about client certificates on listeners with session resumption (all have it). */
function tlsReasons(
	before: DocumentImage,
	after: DocumentImage,
	served: ReadonlySet<string>,
	reasons: RestartReason[],
): void {
	// With certificates on demand for any name, the names served so far were chosen by clients.
	const servesAny = before.certificates?.managed.policies.some(
		({ subjects, on_demand }) => subjects.length === 0 && on_demand === true,
	);
	for (const name of servesAny ? [] : (after.certificates?.names ?? [])) {
		if (served.has(name) || coveringWildcards(name).some(wildcard => served.has(wildcard))) continue;
		const message = `Adding the TLS host name \`${name}\` needs a restart: the process has never served it.`;
		reasons.push({ code: 'tls_hostname_added', subject: name, message });
		if (reasons.length >= MAX_NAMES) break;
	}
	const mutualListeners = new Set(before.certificates?.mutual);
	const httpsListeners = new Set(
		before.listeners.map(({ address }) => (address.scheme === 'https' ? socketText(address) : '')),
	);
	for (const listener of after.certificates?.mutual ?? []) {
		if (mutualListeners.has(listener) || !httpsListeners.has(listener)) continue;
		const message = `Asking for client certificates on ${listener} needs a restart: sessions begun without one could be resumed.`;
		reasons.push({ code: 'mutual_tls_with_resumption', subject: listener, message });
	}
}

function listenerReasons(
	before: DocumentImage,
	after: DocumentImage,
	mayAddPlain: boolean,
	reasons: RestartReason[],
): void {
	const identify = (address: ListenerAddress) => `${address.scheme} ${address.key}`;
	const oldListeners = new Set(before.listeners.map(listener => identify(listener.address)));
	const newListeners = new Set(after.listeners.map(listener => identify(listener.address)));
	for (const { address } of after.listeners) {
		if (oldListeners.has(identify(address)) || (mayAddPlain && address.scheme === 'http')) continue;
		const subject = socketText(address);
		reasons.push({
			code: 'listener_added',
			subject,
			message: `Listening on ${subject} (${address.scheme}) needs a restart: the process does not have this socket.`,
		});
	}
	for (const { address } of before.listeners) {
		if (newListeners.has(identify(address))) continue;
		const subject = socketText(address);
		reasons.push({
			code: 'listener_removed',
			subject,
			message: `No longer listening on ${subject} (${address.scheme}) needs a restart.`,
		});
	}
}
