/** Determines which changes to a document a running process cannot apply (service specification, rules for loads). */
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
	 * True if the process was started without a configuration. Its Admin API then exists whatever the option `admin` says, and the
	 * process may add plaintext listeners until it has some.
	 */
	readonly unconfigured: boolean;
	/**
	 * Every host name that the process has served over TLS since its start, including wildcards. A name that was removed can be
	 * added again, and so can one that a wildcard covers.
	 */
	readonly servedNames: ReadonlySet<string>;
}

/** Returns the reasons why `newImage` cannot replace `oldImage` in this process; empty if it can. */
export function restartReasons(
	oldImage: DocumentImage,
	newImage: DocumentImage,
	{ unconfigured, servedNames }: ProcessFacts,
): RestartReason[] {
	const reasons: RestartReason[] = [];
	addListenerReasons(oldImage, newImage, unconfigured && oldImage.listeners.length === 0, reasons);
	addTlsReasons(oldImage, newImage, servedNames, reasons);
	for (const { setting } of startupChanges(
		withAdmin(oldImage.document, unconfigured),
		withAdmin(newImage.document, unconfigured),
	)) {
		const message = `\`${setting}\` cannot be changed while the server runs.`;
		reasons.push({ code: 'setting_changed', subject: setting, message });
	}
	return reasons;
}

/** Maximum number of reported reasons about host names. A longer list would not help. */
const MAX_NAME_REASONS = 50;

/**
 * Adds the Admin API to the document of a process that was started without a configuration, because such a process always has it.
 */
function withAdmin(document: Document, needsAdmin: boolean): Document {
	if (!needsAdmin || document.settings?.admin) return document;
	return { ...document, settings: { ...document.settings, admin: {} } };
}

/**
 * Adds reasons about new TLS host names, and about client certificates on listeners with session resumption. All TLS listeners have
 * session resumption.
 */
function addTlsReasons(
	oldImage: DocumentImage,
	newImage: DocumentImage,
	servedNames: ReadonlySet<string>,
	reasons: RestartReason[],
): void {
	// If certificates are obtained on demand for any name, clients, not the configuration, have chosen the names served so far.
	const servesAnyName = oldImage.certificates?.managed.policies.some(
		({ subjects, on_demand }) => subjects.length === 0 && on_demand === true,
	);
	for (const name of servesAnyName ? [] : (newImage.certificates?.names ?? [])) {
		if (servedNames.has(name) || coveringWildcards(name).some(wildcard => servedNames.has(wildcard))) continue;
		const message = `Adding the TLS host name \`${name}\` needs a restart: the process has never served it.`;
		reasons.push({ code: 'tls_hostname_added', subject: name, message });
		if (reasons.length >= MAX_NAME_REASONS) break;
	}
	const mutualListeners = new Set(oldImage.certificates?.mutual);
	const httpsListeners = new Set(
		oldImage.listeners.map(({ address }) => (address.scheme === 'https' ? socketText(address) : '')),
	);
	for (const listener of newImage.certificates?.mutual ?? []) {
		if (mutualListeners.has(listener) || !httpsListeners.has(listener)) continue;
		const message = `Asking for client certificates on ${listener} needs a restart: sessions begun without one could be resumed.`;
		reasons.push({ code: 'mutual_tls_with_resumption', subject: listener, message });
	}
}

function addListenerReasons(
	oldImage: DocumentImage,
	newImage: DocumentImage,
	mayAddPlaintext: boolean,
	reasons: RestartReason[],
): void {
	const identityOf = (address: ListenerAddress) => `${address.scheme} ${address.key}`;
	const oldListeners = new Set(oldImage.listeners.map(listener => identityOf(listener.address)));
	const newListeners = new Set(newImage.listeners.map(listener => identityOf(listener.address)));
	for (const { address } of newImage.listeners) {
		if (oldListeners.has(identityOf(address)) || (mayAddPlaintext && address.scheme === 'http')) continue;
		const subject = socketText(address);
		reasons.push({
			code: 'listener_added',
			subject,
			message: `Listening on ${subject} (${address.scheme}) needs a restart: the process does not have this socket.`,
		});
	}
	for (const { address } of oldImage.listeners) {
		if (newListeners.has(identityOf(address))) continue;
		const subject = socketText(address);
		reasons.push({
			code: 'listener_removed',
			subject,
			message: `No longer listening on ${subject} (${address.scheme}) needs a restart.`,
		});
	}
}
