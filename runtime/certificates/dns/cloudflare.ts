/** The DNS provider `cloudflare`. */
import { IssueError } from '../issuer.ts';
import { fetchApiJson } from './api-request.ts';
import type { ChallengeRecord, DnsProvider } from './dns-provider.ts';

export function cloudflareProvider(settings: { readonly [setting: string]: unknown }): DnsProvider {
	const endpoint = String(settings.endpoint ?? 'https://api.cloudflare.com/client/v4').replace(/\/$/, '');
	const token = String(settings.api_token ?? '');
	const zoneToken = String(settings.zone_token ?? token);
	const callApi = (
		method: 'GET' | 'POST' | 'DELETE',
		path: string,
		bearer: string,
		body?: object,
		signal?: AbortSignal,
	): Promise<{ readonly [member: string]: unknown }> =>
		fetchApiJson({
			method,
			url: endpoint + path,
			provider: 'cloudflare',
			headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
			body: body && JSON.stringify(body),
			explain: extractErrorMessage,
			signal,
		});
	return {
		async add({ zone, name, value, ttl }: ChallengeRecord, signal) {
			const zoneList = await callApi('GET', `/zones?name=${encodeURIComponent(zone)}`, zoneToken, undefined, signal);
			const zoneId = (zoneList.result as { id?: unknown }[] | undefined)?.[0]?.id;
			if (typeof zoneId !== 'string') {
				throw new IssueError('dns/no-zone', `The Cloudflare token has no access to the zone \`${zone}\`.`);
			}
			const record = { type: 'TXT', name, content: `"${value}"`, ttl: Math.max(60, ttl) };
			const createdRecord = await callApi(
				'POST',
				`/zones/${encodeURIComponent(zoneId)}/dns_records`,
				token,
				record,
				signal,
			);
			const recordId = (createdRecord.result as { id?: unknown } | undefined)?.id;
			if (typeof recordId !== 'string')
				throw new IssueError('dns/refused', 'The API of cloudflare did not create the record.');
			return async () => {
				await callApi(
					'DELETE',
					`/zones/${encodeURIComponent(zoneId)}/dns_records/${encodeURIComponent(recordId)}`,
					token,
				);
			};
		},
	};
}

function extractErrorMessage(text: string): string | undefined {
	try {
		const { errors } = JSON.parse(text) as { errors?: { message?: unknown }[] };
		return errors?.map(({ message }) => String(message)).join('; ');
	} catch {
		return undefined;
	}
}
