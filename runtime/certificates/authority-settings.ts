/** The settings of internal CAs, with the defaults of the option `pki` filled in. */
import {
	type AuthoritySettings,
	DEFAULT_INTERMEDIATE_LIFETIME_MS,
	ROOT_LIFETIME_MS,
} from '../../compiler/modules/options/pki.ts';

/** The complete settings of one CA. */
export interface AuthorityPlan {
	readonly id: string;
	readonly rootName: string;
	readonly intermediateName: string;
	/** Lifetimes in milliseconds. */
	readonly rootLifetimeMs: number;
	readonly intermediateLifetimeMs: number;
	/** Milliseconds between two checks of whether one of the CA's own certificates must be renewed. */
	readonly maintenanceIntervalMs: number;
	/** A certificate is renewed when this fraction of its lifetime remains. */
	readonly renewalRatio: number;
	/** Files that replace the root or intermediate in the store. */
	readonly root: { readonly cert: string; readonly key: string } | undefined;
	readonly intermediate: { readonly cert: string; readonly key: string } | undefined;
}

/** Fills in the defaults. `now` is in milliseconds since the epoch. */
export function authorityPlan(id: string, settings: AuthoritySettings, now: number): AuthorityPlan {
	const name = settings.name ?? (id === 'local' ? 'svc Local Authority' : `svc Authority ${id}`);
	const year = String(new Date(now).getUTCFullYear());
	const expandPlaceholders = (text: string): string =>
		text.replaceAll('{pki.ca.name}', name).replaceAll('{time.now.year}', year).slice(0, MAX_COMMON_NAME);
	return {
		id,
		rootName: expandPlaceholders(settings.root_cn ?? '{pki.ca.name} - {time.now.year} ECC Root'),
		intermediateName: expandPlaceholders(settings.intermediate_cn ?? '{pki.ca.name} - ECC Intermediate'),
		rootLifetimeMs: ROOT_LIFETIME_MS,
		intermediateLifetimeMs: settings.intermediate_lifetime ?? DEFAULT_INTERMEDIATE_LIFETIME_MS,
		maintenanceIntervalMs: settings.maintenance_interval ?? 600_000,
		renewalRatio: settings.renewal_window_ratio ?? 0.2,
		root: filesOf(settings.root),
		intermediate: filesOf(settings.intermediate),
	};
}

/** Maximum length of a common name (RFC 5280, ub-common-name). */
const MAX_COMMON_NAME = 64;

function filesOf(files: AuthoritySettings['root']): AuthorityPlan['root'] {
	return files?.cert !== undefined && files.key !== undefined ? { cert: files.cert, key: files.key } : undefined;
}
