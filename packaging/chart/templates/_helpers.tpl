{{- define "busbar.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- define "busbar.labels" -}}
app.kubernetes.io/name: busbar
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
{{- define "busbar.selector" -}}
app.kubernetes.io/name: busbar
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
