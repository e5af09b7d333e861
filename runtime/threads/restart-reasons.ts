/** Which changes of a document a running process cannot make (service specification, rules for loads). */
import { DEFAULT_ADMIN_ADDRESS } from '../../compiler/options/admin.ts';
import { options } from '../../compiler/options/index.ts';
import type { AdminSettings, Settings } from '../../compiler/document/document.ts';
import type { Schema } from '../../compiler/directives/directive.ts';
import type { RestartReason } from '../control.ts';
import { canonicalJson } from '../leases.ts';
import { addressText } from '../listeners/address-text.ts';
import type { DocumentImage } from './document-image.ts';
import type { ListenerAddress } from './messages.ts';

/** Paths in the settings whose change needs a restart, by the mark of the options and their schemas. */
function startupPaths(): string[][] {
	const paths: string[][] = [];
	const visit = (schema: Schema, path: string[]) => {
		if (schema['startup'] === true) {
			paths.push(path);
			return;
		}
		for (const [name, property] of Object.entries((schema['properties'] ?? {}) as { [name: string]: Schema })) {
			visit(property, [...path, name]);
		}
	};
	for (const option of options) {
		// Where the Admin API listens is compared with its default, below.
		if (option.id === 'admin') continue;
		if (option.startup) paths.push([option.id]);
		else visit(option.schema, [option.id]);
	}
	return paths;
}

function settingAt(settings: Settings, path: readonly string[]): unknown {
	let value: unknown = settings;
	for (const name of path) value = (value as { [name: string]: unknown } | null | undefined)?.[name];
	return value;
}

/**
 * Why `after` cannot replace `before` in this process; empty when it can. `unconfigured`: the process was started
 * without a configuration, so its Admin API stands without the option, and until it has listeners it may take plaintext ones.
 */
export function restartReasons(before: DocumentImage, after: DocumentImage, unconfigured: boolean): RestartReason[] {
	const reasons: RestartReason[] = [];
	listenerReasons(before, after, unconfigured && before.listeners.length === 0, reasons);
	const old = before.document.settings ?? {};
	const next = after.document.settings ?? {};
	for (const path of startupPaths()) {
		const same = canonicalJson(settingAt(old, path)) === canonicalJson(settingAt(next, path));
		if (!same) reasons.push(settingChanged(path.join('.')));
	}
	if (adminAddress(old, unconfigured) !== adminAddress(next, unconfigured)) reasons.push(settingChanged('admin'));
	return reasons;
}

/** Where the Admin API of these settings listens; undefined for none. */
function adminAddress(settings: Settings, always: boolean): string | undefined {
	const admin: AdminSettings | undefined = settings.admin ?? (always ? {} : undefined);
	if (admin === undefined || admin.off) return undefined;
	return admin.listen ?? DEFAULT_ADMIN_ADDRESS;
}

function settingChanged(name: string): RestartReason {
	return {
		code: 'setting_changed',
		subject: name,
		message: `\`${name}\` is fixed when the process starts.`,
	};
}

function listenerReasons(
	before: DocumentImage,
	after: DocumentImage,
	mayAddPlain: boolean,
	reasons: RestartReason[],
): void {
	const id = (address: ListenerAddress) => `${address.scheme} ${address.key}`;
	const old = new Set(before.listeners.map(listener => id(listener.address)));
	const next = new Set(after.listeners.map(listener => id(listener.address)));
	for (const { address } of after.listeners) {
		if (old.has(id(address)) || (mayAddPlain && address.scheme === 'http')) continue;
		const subject = addressText(address);
		reasons.push({
			code: 'listener_added',
			subject,
			message: `Listening on ${subject} (${address.scheme}) needs a restart: the process does not have this socket.`,
		});
	}
	for (const { address } of before.listeners) {
		if (next.has(id(address))) continue;
		const subject = addressText(address);
		reasons.push({
			code: 'listener_removed',
			subject,
			message: `No longer listening on ${subject} (${address.scheme}) needs a restart.`,
		});
	}
}
