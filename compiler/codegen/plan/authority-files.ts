/** Checks certificate files that settings name: the files of internal authorities, and the roots that are trusted for issuers. */
import { X509Certificate } from 'node:crypto';
import type { Report } from '../../diagnostics/diagnostic.ts';
import type { Document, Step } from '../../document/document.ts';
import { escapePointer } from '../../document/json-pointer.ts';
import type { IssuerSettings } from '../../document/tls-settings.ts';
import type { PkiSettings } from '../../modules/options/pki.ts';
import { HANDLERS } from '../../modules/registry/handlers.ts';
import { ReadError, type Reader } from '../../source/reader.ts';
import { isFileMistake } from './certificate-check.ts';
import { parsePemCertificates } from './certificate-files.ts';
import type { CertificatePlan } from './certificate-plan.ts';
import type { PlanFiles } from './plan-tls.ts';

/** Matches references to environment variables, such as `{env.NAME}` and `{$NAME}`, and captures the name. */
const ENVIRONMENT_REFERENCE = /\{(?:env\.|\$)([^{}\s]+)\}/g;

const NOT_AUTHORITY_HINT = 'Use a CA certificate: its basic constraints must say `CA:TRUE`.';

/** A file with root certificates, and the JSON pointer of the setting that names it. */
interface RootFile {
	readonly file: string;
	readonly pointer: string;
}

/**
 * Reports certificate and key files of internal authorities that cannot be read or do not match each other, and invalid root
 * certificates. A mistake in a file that no site needs is only a warning, because the server never reads the file.
 */
export function checkAuthorityFiles(
	document: Document,
	certificatePlan: CertificatePlan,
	{ reader, certificateCheck, facts }: PlanFiles,
	report: Report,
): void {
	const unusedFileFields = { severity: 'warning', hint: 'No site uses it.' } as const;
	let usedAuthorities: ReadonlySet<string> | undefined;
	const isUsed = (id: string): boolean => {
		usedAuthorities ??= new Set([...certificatePlan.authorities, ...referencedAuthorities(document)]);
		return usedAuthorities.has(id);
	};
	const { authorities = {} } = (document.settings?.pki ?? {}) as PkiSettings;
	for (const [id, authority] of Object.entries(authorities)) {
		for (const level of ['root', 'intermediate'] as const) {
			const certificateFiles = authority[level];
			if (certificateFiles?.cert === undefined || certificateFiles.key === undefined) continue;
			const pairCheck = certificateCheck.checkPair(certificateFiles.cert, certificateFiles.key, reader);
			const pointer = `/settings/pki/authorities/${escapePointer(id)}/${level}`;
			if (isFileMistake(pairCheck))
				report({ ...pairCheck, pointer, ...(isUsed(id) ? { severity: 'error' } : unusedFileFields) });
			else if (!new X509Certificate(reader.readBytes(certificateFiles.cert)).ca) {
				const message = `\`${certificateFiles.cert}\` is not a CA certificate.`;
				report({ code: 'tls/not-an-authority', severity: 'error', pointer, message, hint: NOT_AUTHORITY_HINT });
			}
		}
	}
	for (const { file: configuredFile, pointer } of rootFilesOf(document)) {
		// Without facts about the server's machine, the values of its environment variables are unknown, and so is the path.
		if (!facts && configuredFile.search(ENVIRONMENT_REFERENCE) !== -1) continue;
		const file = configuredFile.replaceAll(ENVIRONMENT_REFERENCE, (_whole, name: string) => facts?.env(name) ?? '');
		const message = rootFileMistake(file, reader);
		if (message === undefined) continue;
		const isNeeded = certificatePlan.policies.some(({ issuers }) =>
			issuers.some(({ trusted_roots: roots }) => (roots as readonly string[] | undefined)?.includes(configuredFile)),
		);
		report({ code: 'tls/bad-root', pointer, message, ...(isNeeded ? { severity: 'error' } : unusedFileFields) });
	}
}

function rootFilesOf({ settings = {}, sites = [] }: Document): RootFile[] {
	const rootFiles: RootFile[] = [];
	const addRoots = (issuer: { readonly [setting: string]: unknown } | undefined, pointer: string): void => {
		for (const [index, file] of ((issuer?.trusted_roots ?? []) as readonly string[]).entries()) {
			rootFiles.push({ file, pointer: `${pointer}/trusted_roots/${index}` });
		}
	};
	const addIssuers = (issuers: unknown, pointer: string): void => {
		for (const [index, issuer] of ((issuers ?? []) as readonly IssuerSettings[]).entries()) {
			addRoots(issuer, `${pointer}/${index}`);
		}
	};
	addIssuers(settings.cert_issuers, '/settings/cert_issuers');
	if (typeof settings.acme_ca_root === 'string') {
		rootFiles.push({ file: settings.acme_ca_root, pointer: '/settings/acme_ca_root' });
	}
	for (const [index, { tls }] of sites.entries()) {
		if (!tls) continue;
		addIssuers(tls.issuers, `/sites/${index}/tls/issuers`);
		addRoots(tls.acme, `/sites/${index}/tls/acme`);
	}
	return rootFiles;
}

function rootFileMistake(file: string, reader: Reader): string | undefined {
	try {
		parsePemCertificates(Buffer.from(reader.readBytes(file)).toString('latin1'));
		return undefined;
	} catch (error) {
		if (!(error instanceof ReadError)) return `\`${file}\` does not contain certificates.`;
		const reason = error.code === 'ENOENT' ? 'it does not exist' : `the system says ${error.code}`;
		return `The root file \`${file}\` cannot be read: ${reason}.`;
	}
}

/** Returns the names of the internal authorities that handlers and trust pools of a document use. Issuers are not examined. */
function referencedAuthorities(value: unknown): string[] {
	if (typeof value !== 'object' || value === null) return [];
	const { handler, source, authorities } = value as { readonly [field: string]: unknown };
	const handlerAuthority =
		typeof handler === 'string' ? HANDLERS.get(handler)?.authorityOf?.(value as Step) : undefined;
	const authorityIds: string[] = handlerAuthority === undefined ? [] : [handlerAuthority];
	if ((source === 'pki_root' || source === 'pki_intermediate') && Array.isArray(authorities)) {
		authorityIds.push(...(authorities as readonly string[]));
	}
	return [...authorityIds, ...Object.values(value).flatMap(referencedAuthorities)];
}
