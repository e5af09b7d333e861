/** Finds the places where a document requests HTTP/3. */
import type { Document } from '../../document/document.ts';
import type { ServerSettings } from '../../document/server-settings.ts';

/** Returns the JSON pointers of the protocol lists that contain `h3`. */
export function http3Pointers({ settings, sites }: Document): string[] {
	const pointers: string[] = [];
	const servers = (settings?.servers ?? []) as readonly ServerSettings[];
	servers.forEach(({ protocols }, index) => {
		if (protocols?.includes('h3')) pointers.push(`/settings/servers/${index}/protocols`);
	});
	const namesHttp3 = (bind: readonly unknown[] | undefined): boolean =>
		bind?.some(entry => typeof entry === 'object' && (entry as ServerSettings).protocols?.includes('h3')) ?? false;
	if (namesHttp3(settings?.default_bind)) pointers.push('/settings/default_bind');
	sites?.forEach(({ bind }, index) => {
		if (namesHttp3(bind)) pointers.push(`/sites/${index}/bind`);
	});
	return pointers;
}
