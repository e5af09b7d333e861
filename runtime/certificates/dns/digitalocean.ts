/** The DNS provider `digitalocean`. */
import { IssueError } from '../issuer.ts';
import { apiJson, apiText } from './api-request.ts';
import { type DnsProvider, relativeName } from './dns-provider.ts';

export function digitaloceanProvider(settings: { readonly [setting: string]: unknown }): DnsProvider {
	const endpoint = String(settings.endpoint ?? 'https://api.digitalocean.com').replace(/\/$/, '');
	const common = {
		provider: 'digitalocean',
		headers: { authorization: `Bearer ${String(settings.auth_token ?? '')}`, 'content-type': 'application/json' },
		explain,
	};
	return {
		async add(record, signal) {
			const records = `${endpoint}/v2/domains/${encodeURIComponent(record.zone)}/records`;
			const body = { type: 'TXT', name: relativeName(record), data: record.value, ttl: Math.max(30, record.ttl) };
			const made = await apiJson({ ...common, method: 'POST', url: records, body: JSON.stringify(body), signal });
			const id = (made.domain_record as { id?: unknown } | undefined)?.id;
			if (typeof id !== 'number' && typeof id !== 'string') {
				throw new IssueError('dns/refused', 'The API of digitalocean did not create the record.');
			}
			return async () => {
				await apiText({ ...common, method: 'DELETE', url: `${records}/${encodeURIComponent(String(id))}` });
			};
		},
	};
}

function explain(text: string): string | undefined {
	try {
		return String((JSON.parse(text) as { message?: unknown }).message ?? '');
	} catch {
		return undefined;
	}
}
