{{- define "busbar.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion | replace "+" "-" }}
{{- end }}
{{- define "busbar.nodeImage" -}}
{{ .Values.agent.image.repository }}:{{ .Values.agent.image.tag | default .Chart.AppVersion | replace "+" "-" }}
{{- end }}
{{- define "busbar.labels" -}}
app.kubernetes.io/name: busbar
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "-" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
{{- define "busbar.selector" -}}
app.kubernetes.io/name: busbar
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "busbar.host" -}}
{{ .Release.Name }}-server.{{ .Release.Namespace }}.svc
{{- end }}
{{- define "busbar.tlsSecret" -}}
{{ .Values.server.tlsSecret | default (printf "%s-server-tls" .Release.Name) }}
{{- end }}
{{- define "busbar.selfSigned" -}}
{{ if and .Values.server.enabled (not .Values.server.tlsSecret) }}yes{{ end }}
{{- end }}
{{- define "busbar.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
{{- define "busbar.nobody" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- define "busbar.pullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
