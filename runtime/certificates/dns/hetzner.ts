/** The DNS provider `hetzner`, through the Cloud API. */
import { fetchApiText } from './api-request.ts';
import { type DnsProvider, relativeName } from './dns-provider.ts';

export function hetznerProvider(settings: { readonly [setting: string]: unknown }): DnsProvider {
	const endpoint = String(settings.endpoint ?? 'https://api.hetzner.cloud/v1').replace(/\/$/, '');
	const commonOptions = {
		provider: 'hetzner',
		method: 'POST' as const,
		headers: { authorization: `Bearer ${String(settings.api_token ?? '')}`, 'content-type': 'application/json' },
		explain: extractErrorMessage,
	};
	return {
		async add(record, signal) {
			const name = encodeURIComponent(relativeName(record));
			const actionsUrl = `${endpoint}/zones/${encodeURIComponent(record.zone)}/rrsets/${name}/TXT/actions`;
			const records = [{ value: `"${record.value}"` }];
			const body = JSON.stringify({ records, ttl: Math.max(60, record.ttl) });
			await fetchApiText({ ...commonOptions, url: `${actionsUrl}/add_records`, body, signal });
			return async () => {
				await fetchApiText({
					...commonOptions,
					url: `${actionsUrl}/remove_records`,
					body: JSON.stringify({ records }),
				});
			};
		},
	};
}

function extractErrorMessage(text: string): string | undefined {
	try {
		const { error } = JSON.parse(text) as { error?: { message?: unknown } };
		return error?.message === undefined ? undefined : String(error.message);
	} catch {
		return undefined;
	}
}
