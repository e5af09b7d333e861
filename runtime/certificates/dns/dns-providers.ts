/** The registry of DNS providers. A provider's code is loaded on first use. */
import { IssueError } from '../issuer.ts';
import type { DnsProvider } from './dns-provider.ts';

/** Creates a provider. Rejects with IssueError if this build does not have it. */
export async function createDnsProvider(
	settings: unknown,
	deps: {
		readonly workingDirectory: string;
		readonly environment: { readonly [name: string]: string | undefined };
	},
): Promise<DnsProvider> {
	const providerSettings = settings as { readonly provider: string; readonly [setting: string]: unknown };
	switch (providerSettings.provider) {
		case 'cloudflare':
			return (await import('./cloudflare.ts')).cloudflareProvider(providerSettings);
		case 'route53':
			return (await import('./route53.ts')).route53Provider(providerSettings, deps.environment);
		case 'digitalocean':
			return (await import('./digitalocean.ts')).digitaloceanProvider(providerSettings);
		case 'hetzner':
			return (await import('./hetzner.ts')).hetznerProvider(providerSettings);
		case 'rfc2136':
			return (await import('./rfc2136.ts')).rfc2136Provider(providerSettings);
		case 'exec':
			return (await import('./exec.ts')).execProvider(providerSettings, deps);
		default:
			throw new IssueError('dns/unknown', `\`${providerSettings.provider}\` is not a DNS provider of this build.`);
	}
}
