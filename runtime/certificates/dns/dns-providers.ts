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
	const written = settings as { readonly provider: string; readonly [setting: string]: unknown };
	switch (written.provider) {
		case 'cloudflare':
			return (await import('./cloudflare.ts')).cloudflareProvider(written);
		case 'route53':
			return (await import('./route53.ts')).route53Provider(written, deps.environment);
		case 'digitalocean':
			return (await import('./digitalocean.ts')).digitaloceanProvider(written);
		case 'hetzner':
			return (await import('./hetzner.ts')).hetznerProvider(written);
		case 'rfc2136':
			return (await import('./rfc2136.ts')).rfc2136Provider(written);
		case 'exec':
			return (await import('./exec.ts')).execProvider(written, deps);
		default:
			throw new IssueError('dns/unknown', `\`${written.provider}\` is not a DNS provider of this build.`);
	}
}
