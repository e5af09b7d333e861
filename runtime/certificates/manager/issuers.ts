/** The registry of issuers, which creates them from their settings. */
import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { canonicalJson } from '../../../compiler/document/canonical-json.ts';
import type { IssuerSettings } from '../../../compiler/document/tls-settings.ts';
import { internalIssuer } from '../internal-issuer.ts';
import { IssueError, type Issuer } from '../issuer.ts';
import type { IssuerDeps } from '../issuer-deps.ts';
import { expandEnvironment } from '../settings-text.ts';

/** Returns a key that identifies an issuer by its settings and the contents of the files they name. */
export async function issuerKey(
	settings: IssuerSettings,
	{ environment, workingDirectory }: Pick<IssuerDeps, 'environment' | 'workingDirectory'>,
): Promise<string> {
	const files = expandEnvironment(settings.trusted_roots ?? [], environment) as readonly string[];
	const roots = files.map(file => readFile(path.resolve(workingDirectory, file), 'latin1').catch(() => ''));
	return canonicalJson([settings, hash('sha256', JSON.stringify(await Promise.all(roots)), 'base64')]);
}

/** Returns the reason why an issuer cannot be created, or undefined if it can be created. Does not access the network. */
export async function findIssuerProblem(
	unexpandedSettings: IssuerSettings,
	deps: Pick<IssuerDeps, 'environment' | 'workingDirectory'>,
): Promise<{ readonly code: string; readonly message: string } | undefined> {
	if (unexpandedSettings.issuer !== 'acme') return undefined;
	const settings = expandEnvironment(unexpandedSettings, deps.environment);
	for (const name of ['directory', 'test_directory']) {
		const url = settings[name];
		if (url === undefined || (typeof url === 'string' && /^https?:$/.test(URL.parse(url)?.protocol ?? ''))) continue;
		return { code: 'issuer/bad-url', message: `\`${url}\` is not the URL of a directory.` };
	}
	if (settings.dns === undefined) return undefined;
	try {
		const { createDnsProvider } = await import('../dns/dns-providers.ts');
		await createDnsProvider(settings.dns, deps);
		return undefined;
	} catch (error) {
		if (error instanceof IssueError) return { code: error.code, message: error.message };
		throw error;
	}
}

/** Creates an issuer. Rejects with IssueError if its kind is unknown or its settings are invalid. */
export async function createIssuer(settings: IssuerSettings, deps: IssuerDeps): Promise<Issuer> {
	const problem = await findIssuerProblem(settings, deps);
	if (problem) throw new IssueError(problem.code, problem.message);
	switch (settings.issuer) {
		case 'internal':
			return internalIssuer(settings, deps.findAuthority);
		case 'acme':
			return (await import('../acme/acme-issuer.ts')).acmeIssuer(settings, deps);
		default:
			throw new IssueError('issuer/unknown', `The issuer \`${settings.issuer}\` is not supported.`);
	}
}
